internal import FileLayer
public import SystemPackage
public import VaultCrypto

/// The kind of file at a path, read from its first 16 bytes.
public enum FileInspection: Sendable, Equatable {
  /// No file.
  case absent
  /// An empty file: a database that was never written.
  case empty
  /// An unencrypted SQLite database.
  case plainSQLite
  /// Any other file.
  case foreign
  /// A sealed database of this version.
  case sealed(SealedHeader)
  /// A sealed database of another version.
  case newerVersion(Int)

  /// Requires a sealed database that `key` opens, or, if `exists` is false, a path for a new one.
  ///
  /// - Throws: the `SealedDatabaseError` for the kind of file that is there instead.
  public func require(
    key: borrowing SecretBytes, at path: FilePath, exists: Bool
  ) throws(SealedDatabaseError) {
    if !exists && (self == .absent || self == .empty) { return }
    let header = try header(at: path.string)
    guard try header.matches(key: key, at: path.string) else {
      throw SealedDatabaseError(.wrongKey, path: path.string)
    }
  }

  /// Reads the first 16 bytes of a file; fewer, and 16 zeros, are `foreign`.
  init(firstBytes bytes: [UInt8]) {
    self =
      if bytes == PageLayout.plainIdentity {
        .plainSQLite
      } else if bytes.count != SealedHeader.byteCount || !bytes.starts(with: SealedHeader.magic) {
        .foreign
      } else if Int(bytes[3]) != SealedHeader.currentVersion {
        .newerVersion(Int(bytes[3]))
      } else {
        .sealed(SealedHeader(keyCheck: Array(bytes[4..<8]), fileID: Array(bytes[8..<16])))
      }
  }

  /// The header of a sealed database.
  ///
  /// - Throws: the error for the kind of file that is there instead.
  func header(at path: String) throws(SealedDatabaseError) -> SealedHeader {
    switch self {
    case .sealed(let header): return header
    case .absent, .empty: throw SealedDatabaseError(.notFound, path: path)
    case .plainSQLite: throw SealedDatabaseError(.plainDatabase, path: path)
    case .foreign: throw SealedDatabaseError(.notSealed, path: path)
    case .newerVersion(let version):
      throw SealedDatabaseError(.newerVersion, path: path, detail: "version \(version)")
    }
  }
}

extension SealedVFS {
  /// Requires a sealed database that `key` opens, or one with a damaged header that its log or journal restores.
  ///
  /// - Parameter exists: false also allows a path for a new database.
  /// - Throws: the `SealedDatabaseError` for the kind of file that is there instead.
  package static func require(
    key: borrowing SecretBytes, at path: FilePath, over base: String = "unix", exists: Bool = true
  ) throws(SealedDatabaseError) {
    do throws(SealedDatabaseError) {
      try inspect(path, over: base).require(key: key, at: path, exists: exists)
    } catch  where error.code == .notSealed {
      let files = try DatabaseFiles(path, over: base)
      if try files.status().map({ $0.kind != .regular }) == true { throw error }
      guard let file = try files.open(isLockable: false),
        try files.restorableHeader(of: file.base, under: key) != nil
      else { throw error }
    }
  }

  /// Inspects the file at a path, without a key, a lock or a change.
  ///
  /// It reads through a file of SQLite's own "unix". If this process holds SQLite's lock on the
  /// file, a plain open and close would release that lock (POSIX locks; see os_unix.c).
  ///
  /// - Throws: `inputOutput` if the file exists and cannot be read.
  public static func inspect(
    _ path: FilePath, over base: String = "unix"
  ) throws(SealedDatabaseError) -> FileInspection {
    let files = try DatabaseFiles(path, over: base)
    let status = try files.status()
    if let status, status.kind != .regular { return .foreign }
    if status?.byteCount == 0 { return .empty }
    guard let file = try files.open(exists: status != nil, isLockable: false) else {
      return .absent
    }
    let byteCount = try file.byteCount()
    if byteCount == 0 { return .empty }
    if byteCount < SealedHeader.byteCount { return .foreign }
    return FileInspection(firstBytes: try file.bytes(SealedHeader.byteCount, at: 0))
  }
}
