import FaultVFS
import SealedVFS
import SystemPackage
import VaultCrypto

/// Whether a workload runs on sealed files or, to compare, on plain SQLite's.
enum FileForm: String, CaseIterable, Sendable {
  case sealed, plain

  static let keyBytes = [UInt8](repeating: 0x4B, count: 32)

  /// Registers the key of a sealed database.
  func register(
    _ path: FilePath, over vfs: String, key: [UInt8] = keyBytes, setsReserve: Bool = false
  ) throws -> KeyRegistration? {
    guard self == .sealed else { return nil }
    return try SealedVFS.register(
      key: SecretBytes(copying: key), at: path, over: vfs, setsReserve: setsReserve)
  }

  /// Opens a database on a VFS, through ours for a sealed one.
  func open(_ path: FilePath, over vfs: String) throws -> SQLConnection {
    try SQLConnection(path.string, vfs: self == .sealed ? SealedVFS.name : vfs)
  }
}
