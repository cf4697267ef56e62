import FaultVFS
import Foundation
import SealedVFS
import SystemPackage
import TestSupport
import Testing

/// A stored database of format version 1, with the expected outcome of opening it.
struct DatabaseFixture: Sendable, CustomTestStringConvertible {
  enum Outcome: Sendable, Equatable {
    /// The database opens, with this number of rows in `t`.
    case rows(Int)
    /// The opening is refused with this code.
    case refused(SealedDatabaseError.Code, page: UInt32? = nil)
  }

  let name: String
  let outcome: Outcome
  /// The fixture from whose files this one is made, by one change.
  var base: String?
  var change: (@Sendable (TemporaryDatabase) throws -> Void)?

  var testDescription: String { name }

  static let folder = FilePath(Repository.path("Fixtures/databases"))

  static let positives: [DatabaseFixture] = [
    DatabaseFixture(name: "rows", outcome: .rows(60)),
    DatabaseFixture(name: "log-not-checkpointed", outcome: .rows(90)),
    DatabaseFixture(name: "hot-journal", outcome: .rows(150)),
    DatabaseFixture(name: "spilled-first-transaction", outcome: .rows(0)),
    changed("torn-log", .rows(80), "log-not-checkpointed", "-wal") { $0.removeLast(3000) },
    changed("damaged-log-frame", .rows(70), "log-not-checkpointed", "-wal") { bytes in
      // In the page of the first frame of the log's second commit.
      let firstCommit = stride(from: 32, to: bytes.count, by: 4120).first { frame in
        bytes[frame + 4..<frame + 8].contains { $0 != 0 }
      }
      bytes[(firstCommit ?? 0) + 4120 + 24 + 1000] ^= 1
    },
    changed("torn-first-page", .rows(90), "log-not-checkpointed") { bytes in
      for index in 512..<4096 { bytes[index] = 0 }
    },
    DatabaseFixture(
      name: "log-first-page-header", outcome: .rows(90), base: "log-not-checkpointed"
    ) { place in
      // One bit of the file id, which is in the clear before the log's first copy of page 1.
      let frame = try place.frames(of: 1)[0]
      try place.change(place.log) { $0[32 + (frame - 1) * 4120 + 24 + 9] ^= 1 }
    },
    DatabaseFixture(name: "log-header-salts", outcome: .rows(60), base: "log-not-checkpointed") {
      place in try place.changeLogHeader { $0[20] ^= 1 }
    },
  ]

  /// Fixtures made by `Fixtures/databases/make.py`, which only a writer with the key can make.
  static let forged: [DatabaseFixture] = [
    DatabaseFixture(name: "log-frame-first-salt", outcome: .rows(80)),
    DatabaseFixture(name: "log-frame-second-salt", outcome: .rows(80)),
    DatabaseFixture(name: "log-frame-checksum", outcome: .rows(80)),
    DatabaseFixture(name: "log-frame-tag", outcome: .rows(80)),
    DatabaseFixture(name: "log-last-commit-open", outcome: .rows(80)),
    DatabaseFixture(name: "log-header-checksum", outcome: .rows(60)),
    DatabaseFixture(name: "hot-journal-of-deletions", outcome: .rows(60)),
    DatabaseFixture(name: "hot-journal-of-two-segments", outcome: .rows(60)),
    DatabaseFixture(name: "hot-journal-before-an-earlier-one", outcome: .rows(60)),
  ]

  static let negatives: [DatabaseFixture] = [
    DatabaseFixture(name: "plain-database", outcome: .refused(.plainDatabase), base: "rows") {
      place in
      let plain = TemporaryDatabase()
      let connection = try plain.open()
      try connection.fill(60)
      connection.close()
      try place.write(plain.bytes(plain.database), to: place.database)
    },
    flip("other-magic", 1, .notSealed),
    changed("newer-version", .refused(.newerVersion)) { $0[3] = 2 },
    changed("draft-version", .refused(.newerVersion)) { $0[3] = 0 },
    flip("key-check", 5, .wrongKey), flip("file-id", 12, .wrongKey),
    flip("first-page-content", 2000, .damagedPage, page: 1),
    flip("page-content", 8192 + 1, .damagedPage, page: 3),
    flip("page-nonce", 8192 + 4056, .damagedPage, page: 3),
    flip("page-tag", 8192 + 4095, .damagedPage, page: 3),
    changed("pages-exchanged", .refused(.damagedPage, page: 3)) {
      ($0[page: 3], $0[page: 4]) = ($0[page: 4], $0[page: 3])
    },
    changed("page-of-zeros", .refused(.damagedPage, page: 3)) { $0.clear(page: 3) },
    changed("last-page-missing", .refused(.truncated)) { $0.removeLast(4096) },
    changed(
      "log-version-of-sqlite", .refused(.unrelatedCompanionFile), "log-not-checkpointed", "-wal"
    ) { bytes in
      bytes[7] -= 1
      bytes.replaceSubrange(24..<32, with: LogChecksum.littleEndian(bytes[0..<24]))
    },
    damagedJournal("journal-record") { $0[700] ^= 1 },
    damagedJournal("journal-header") { $0[10] ^= 1 },
    damagedJournal("journal-first-byte") { $0[0] = 0xD9 },
    damagedJournal("super-journal-name") {
      $0 += SuperJournalPointer.bytes(naming: "/nowhere/notes.txt")
    },
  ]

  /// A fixture with a change to one file of another fixture, the one with this suffix.
  private static func changed(
    _ name: String, _ outcome: Outcome, _ base: String = "rows", _ suffix: String = "",
    _ change: @escaping @Sendable (inout [UInt8]) -> Void
  ) -> DatabaseFixture {
    DatabaseFixture(name: name, outcome: outcome, base: base) { place in
      try place.change(FilePath(place.database.string + suffix), change)
    }
  }

  private static func damagedJournal(
    _ name: String, _ change: @escaping @Sendable (inout [UInt8]) -> Void
  ) -> DatabaseFixture {
    changed(name, .refused(.damagedJournal), "hot-journal", "-journal", change)
  }

  /// The fixture `rows` with one bit flipped.
  private static func flip(
    _ name: String, _ offset: Int, _ code: SealedDatabaseError.Code, page: UInt32? = nil
  ) -> DatabaseFixture {
    changed(name, .refused(code, page: page)) { $0[offset] ^= 1 }
  }

  /// A temporary database with a copy of the stored files.
  func place() throws -> TemporaryDatabase {
    let place = TemporaryDatabase()
    for suffix in ["", "-wal", "-journal"] {
      let stored = Self.folder.appending(name + ".db" + suffix)
      if place.exists(stored) {
        try place.write(place.bytes(stored), to: FilePath(place.database.string + suffix))
      }
    }
    return place
  }

  /// Stores the files of a temporary database under this fixture's name.
  func store(_ place: TemporaryDatabase) throws {
    for suffix in ["", "-wal", "-journal"] {
      let file = FilePath(place.database.string + suffix)
      if place.exists(file) {
        try place.write(place.bytes(file), to: Self.folder.appending(name + ".db" + suffix))
      }
    }
  }
}

/// SQLite's checksum, as SQLite's description of the file format defines it.
enum LogChecksum {
  static func littleEndian(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    var sum: (UInt32, UInt32) = (0, 0)
    var words: [UInt32] = []
    for start in stride(from: bytes.startIndex, to: bytes.endIndex, by: 4) {
      words.append((0..<4).reduce(0) { $0 | UInt32(bytes[start + $1]) << (8 * UInt32($1)) })
    }
    for index in stride(from: 0, to: words.count, by: 2) {
      sum.0 &+= words[index] &+ sum.1
      sum.1 &+= words[index + 1] &+ sum.0
    }
    return [sum.0, sum.1].flatMap { word in
      (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * $0)) }
    }
  }
}

/// The pointer that SQLite writes at the end of a journal: pager.c, `writeSuperJournal`.
enum SuperJournalPointer {
  static func bytes(naming name: String) -> [UInt8] {
    let name = Array(name.utf8)
    let sum = name.reduce(UInt32(0)) { sum, byte in
      sum &+ UInt32(truncatingIfNeeded: Int8(bitPattern: byte))
    }
    return word(262_145) + name + word(UInt32(name.count)) + word(sum)
      + [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
  }

  private static func word(_ value: UInt32) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
  }
}
