public import SystemPackage
public import VaultCrypto

/// What lies at a path, judged by its first 16 bytes.
public enum FileInspection: Sendable, Equatable {
  /// No file.
  case absent
  /// A file of no bytes: a database that was never written.
  case empty
  /// An unencrypted SQLite database.
  case plainSQLite
  /// Neither.
  case foreign
  /// A sealed database of this version.
  case sealed(SealedHeader)
  /// A sealed database of another version.
  case newerVersion(Int)

  /// Accepts a sealed database that `key` opens, and, unless one must exist, a place for one.
  ///
  /// - Throws: the `SealedFileError` that names what lies there instead.
  public func require(
    key: borrowing SecretBytes, at path: FilePath, exists: Bool
  ) throws(SealedFileError) {
    switch self {
    case .absent, .empty:
      if exists { throw SealedFileError(.absent, path: path.string) }
    case .plainSQLite: throw SealedFileError(.plainDatabase, path: path.string)
    case .foreign: throw SealedFileError(.notSealed, path: path.string)
    case .newerVersion(let version):
      throw SealedFileError(.newerVersion, path: path.string, detail: "version \(version)")
    case .sealed(let header):
      if !header.matches(key: key) { throw SealedFileError(.wrongKey, path: path.string) }
    }
  }
}
