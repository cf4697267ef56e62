import CFuzzedSQLite
import Foundation
import SealedVFS
import SystemPackage
import VaultCrypto

/// The name of a super-journal at the end of a hot journal.
///
/// It is untrusted: anyone could have written it.
///
/// SQLite must delete no file except a super-journal that lists this journal. An unfinished
/// transaction can stay only if SQLite could have given the name.
final class SuperJournalFixture {
  private static let question = "SELECT id || text FROM t ORDER BY id"
  private static let magic: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
  private static let mark: [UInt8] = [0, 4, 0, 1]  // page 262145
  /// The only super-journal that SQLite is allowed to delete.
  private static let listing = "f.db-mj0123AB9CD"

  private let folder: FuzzFolder
  private let registration: KeyRegistration
  private let database: [UInt8]
  private let journal: [UInt8]
  private let committed: [String]
  private let neighbours: [(name: String, bytes: [UInt8])]
  private let names: [String]

  init() throws {
    folder = try FuzzFolder()
    registration = try SealedVFS.register(
      key: SecretBytes(copying: [UInt8](repeating: 7, count: 32)), at: FilePath(folder.database))
    let connection = Connection(folder.database, vfs: SealedVFS.name)
    connection.run(
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT);
      INSERT INTO t (text) VALUES ('one'), (hex(zeroblob(1500))), (hex(zeroblob(1500)))
      """)
    committed = connection.run(Self.question) ?? []
    connection.run("PRAGMA cache_size = 1; BEGIN; UPDATE t SET text = 'y' || text")
    database = folder.contents("f.db") ?? []
    journal = folder.contents("f.db-journal") ?? []
    require(!committed.isEmpty && journal.count > 512, "there is no hot journal")
    neighbours = [
      ("precious", Array("not a super-journal".utf8)),
      (Self.listing, Array("\(folder.database)-journal\0".utf8)),
      ("f.db-mj0123AB9CE", Array("/elsewhere/g.db-journal\0".utf8)),
      ("f.db-mj0123AB9CF", []),
      ("f.db-mj0123ab9cd", Array("\(folder.database)-journal\0".utf8)),
      ("f.db-mj0123AB8CD", Array("\(folder.database)-journal\0".utf8)),
      ("f.db-backup", Array("\(folder.database)-journal\0".utf8)),
    ]
    names = neighbours.map(\.name) + ["missing", "f.db-mjFFFFFF9FF", "f.db", "f.db-journal"]
  }

  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard let edits = Edits(input) else { return }
    put()
    var name = Array("\(folder.path)/\(names[Int(edits.mode >> 2) % names.count])".utf8)
    var tail: [UInt8]
    switch edits.mode & 3 {
    case 0: tail = Self.pointer(name)
    case 1:
      edits.apply(to: &name)
      tail = Self.pointer(name)
    case 2:
      tail = Self.pointer(name)
      edits.apply(to: &tail)
    default: tail = Array(input.dropFirst())
    }
    folder.put("f.db-journal", journal + tail)

    let connection = Connection(folder.database, vfs: SealedVFS.name)
    let rows = connection.run(Self.question)
    _ = consume connection
    for (neighbour, bytes) in neighbours {
      guard folder.contents(neighbour) != bytes else { continue }
      require(
        neighbour == Self.listing && folder.contents(neighbour) == nil,
        "\(neighbour) is deleted or changed")
    }
    require(
      rows == nil || rows == committed || Self.mayStandForACommit(tail),
      "an unfinished transaction stays")
  }

  private func put() {
    for suffix in ["-wal", "-shm"] { folder.remove("f.db" + suffix) }
    folder.put("f.db", database)
    for (name, bytes) in neighbours where folder.contents(name) != bytes { folder.put(name, bytes) }
  }

  /// The pointer as SQLite writes it: page number, name, length, sum, magic.
  private static func pointer(_ name: [UInt8]) -> [UInt8] {
    let sum = name.reduce(UInt32(0)) { $0 &+ UInt32(bitPattern: Int32(Int8(bitPattern: $1))) }
    return mark + name
      + [UInt32(name.count), sum].flatMap { word in
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> $0) }
      } + magic
  }

  /// Whether the journal ends with a name that SQLite gives.
  ///
  /// If such a super-journal is missing, SQLite takes the transaction for committed.
  private static func mayStandForACommit(_ tail: [UInt8]) -> Bool {
    guard tail.count > 16 + 12 else { return false }
    let end = tail.dropLast(16).suffix(12)
    let digits = end.dropFirst(3)
    return end.starts(with: Array("-mj".utf8))
      && digits.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x46).contains($0) }
      && digits[digits.startIndex + 6] == 0x39
  }

  func remove() { folder.removeAll() }
}
