import CSQLite
import FaultVFS
import FileLayer
import Foundation
import SealedVFS
import SystemPackage
import TestSupport
import VaultCrypto

/// A temporary directory with a sealed database.
final class TemporaryDatabase {
  private let folder = ScratchFolder()
  var directory: FilePath { folder.path }
  var database: FilePath { directory.appending("test.db") }
  var log: FilePath { directory.appending("test.db-wal") }
  var journal: FilePath { directory.appending("test.db-journal") }

  static let keyBytes = [UInt8](repeating: 0x4B, count: 32)
  static let otherKeyBytes = [UInt8](repeating: 0x2A, count: 32)

  static func key(_ bytes: [UInt8] = keyBytes) -> SecretBytes { SecretBytes(copying: bytes) }

  private var registrations: [KeyRegistration] = []

  /// Registers a key until this object is released, or until ``release()``.
  @discardableResult
  func register(
    _ keyBytes: [UInt8] = TemporaryDatabase.keyBytes, over base: String = "unix",
    newFileID: [UInt8]? = nil, setsReserve: Bool = false
  ) throws -> KeyRegistration {
    let registration = try SealedVFS.register(
      key: TemporaryDatabase.key(keyBytes), at: database, over: base, newFileID: newFileID,
      setsReserve: setsReserve)
    registrations.append(registration)
    return registration
  }

  /// Registers the key and opens the database.
  func connect(
    _ keyBytes: [UInt8] = TemporaryDatabase.keyBytes, over base: String = "unix",
    newFileID: [UInt8]? = nil, setsReserve: Bool = false
  ) throws -> SQLConnection {
    try register(keyBytes, over: base, newFileID: newFileID, setsReserve: setsReserve)
    return try open()
  }

  func release() { registrations = [] }

  /// The newest fault of the newest registration.
  var fault: SealedDatabaseError? { registrations.last?.fault }

  /// The frames that the newest registration's recovery left out of the log.
  var discardedLogTail: DiscardedLogTail? { registrations.last?.discardedLogTail }

  func open(flags: Int32 = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) throws -> SQLConnection {
    try SQLConnection(database.string, flags: flags)
  }

  /// All bytes of a file, which this process must not have open: the close would release SQLite's
  /// locks.
  func bytes(_ path: FilePath) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: path.string)))
  }

  func write(_ bytes: [UInt8], to path: FilePath) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: path.string))
  }

  func change(_ path: FilePath, _ body: (inout [UInt8]) -> Void) throws {
    var changed = try bytes(path)
    body(&changed)
    try write(changed, to: path)
  }

  /// Changes a file in place, so that processes with the file open see the new bytes.
  func overwrite(_ path: FilePath, _ body: (inout [UInt8]) -> Void) throws {
    var changed = try bytes(path)
    body(&changed)
    let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path.string))
    try handle.truncate(atOffset: 0)
    try handle.write(contentsOf: Data(changed))
    try handle.close()
  }

  func exists(_ path: FilePath) -> Bool { FileManager.default.fileExists(atPath: path.string) }

  var fileNames: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: directory.string)) ?? []).sorted()
  }

  /// The bytes of every file in the directory, by name.
  func contents() throws -> [String: [UInt8]] {
    try Dictionary(uniqueKeysWithValues: fileNames.map { ($0, try bytes(directory.appending($0))) })
  }

  /// Makes the files what they were when ``contents()`` returned this.
  func restore(_ contents: [String: [UInt8]]) throws {
    for name in fileNames where contents[name] == nil {
      try FileManager.default.removeItem(atPath: directory.appending(name).string)
    }
    for (name, bytes) in contents { try write(bytes, to: directory.appending(name)) }
  }

  /// The names of the files that have changed, except the shared memory.
  func changes(since before: [String: [UInt8]]) throws -> [String] {
    let after = try contents()
    return Set(before.keys).union(after.keys).sorted()
      .filter { !$0.hasSuffix("-shm") && before[$0] != after[$0] }
  }

  /// Copies the files as a power cut or a kill would leave them, while SQLite has them open.
  ///
  /// The shared memory is not copied, because it does not survive either.
  func copy(to other: TemporaryDatabase) throws {
    for name in fileNames where !name.hasSuffix("-shm") {
      try Program.copy(directory.appending(name).string, to: other.directory.appending(name).string)
    }
  }
}

extension [UInt8] {
  /// The bytes of a page, by its number from 1.
  subscript(page number: Int) -> ArraySlice<UInt8> {
    get { self[(number - 1) * 4096..<number * 4096] }
    set { replaceSubrange((number - 1) * 4096..<number * 4096, with: newValue) }
  }

  /// Fills a page with zeros.
  mutating func clear(page: Int) { self[page: page] = ArraySlice(repeating: 0, count: 4096) }

  /// Whether the bytes contain a text.
  func contains(text: String) -> Bool { Data(self).range(of: Data(text.utf8)) != nil }
}
