import DataVault
import FileLayer
import SystemPackage
import TestSupport

/// A temporary directory of the test, which is removed with this object.
final class TemporaryHome: Sendable {
  private let folder: ScratchFolder
  var path: FilePath { folder.path }

  init(in base: String = "/tmp") { folder = ScratchFolder(in: base) }

  var store: FileVaultStore { FileVaultStore(home: path) }

  var directory: FilePath { path.appending("vaults") }

  func file(_ id: VaultID = .messaging) -> FilePath { directory.appending("\(id).vault") }

  func bytes(_ id: VaultID = .messaging) throws -> [UInt8] {
    try LinuxFileSystem().read(file(id), maximumByteCount: 1 << 30) ?? []
  }

  func put(_ bytes: [UInt8], _ id: VaultID = .messaging) throws {
    let files = LinuxFileSystem()
    try files.createDirectory(directory, permissions: .ownerReadWriteExecute)
    try files.replace(file(id), with: bytes, permissions: .ownerReadWrite, owner: nil)
  }

  /// Writes a file beside the vaults, and returns its path.
  func write(_ name: String, _ bytes: some Sequence<UInt8>) throws -> FilePath {
    FilePath(try folder.file(name, bytes))
  }

  /// All files in the home, or in a directory of it, by path.
  func tree(_ parent: FilePath? = nil) throws -> [FilePath: [UInt8]] {
    let files = LinuxFileSystem()
    var found: [FilePath: [UInt8]] = [:]
    for name in try files.entries(of: parent ?? path) ?? [] {
      let child = (parent ?? path).appending(name)
      if try files.status(of: child)?.kind == .directory {
        found.merge(try tree(child)) { $1 }
      } else {
        found[child] = try files.read(child, maximumByteCount: 1 << 30)
      }
    }
    return found
  }
}
