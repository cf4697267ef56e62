internal import FileLayer
internal import Glibc
internal import SystemPackage

extension FileVaultStore {
  /// What lies at the vault's path; nil when nothing does.
  ///
  /// - Throws: for a symbolic link, and for what others may read or write.
  func checkedStatus(of id: VaultID) throws(VaultError) -> FileStatus? {
    try checkDirectory()
    let path = path(of: id)
    guard let status = try status(of: path) else { return nil }
    guard status.kind == .regular else {
      throw VaultError(
        .unreadable, "\(path) is not a regular file",
        hint: "a vault is never behind a symbolic link; move the file itself here")
    }
    guard !status.isOpenToOthers else {
      throw VaultError(
        .loosePermissions, "other users may read or write \(path)", hint: "chmod 600 \(path)")
    }
    return status
  }

  /// Refuses a directory of vaults that others may read or write; a missing one is fine.
  package func checkDirectory() throws(VaultError) {
    guard let status = try status(of: directory) else { return }
    guard status.kind == .directory else {
      throw VaultError(.storeUnavailable, "\(directory) is not a directory")
    }
    guard !status.isOpenToOthers else {
      throw VaultError(
        .loosePermissions, "other users may read or write \(directory)",
        hint: "chmod 700 \(directory)")
    }
  }

  private func status(of path: FilePath) throws(VaultError) -> FileStatus? {
    do throws(FileError) {
      return try fileSystem.status(of: path)
    } catch {
      throw .unreadable(error)
    }
  }

  /// Makes the home and its directory of vaults, durably; what is there is left as it is.
  public func prepare() throws(VaultError) {
    try checkDirectory()
    do throws(FileError) {
      var missing: [FilePath] = []
      var path = home
      while !path.isEmpty, try fileSystem.status(of: path) == nil {
        missing.append(path)
        path.removeLastComponent()
      }
      for path in missing.reversed() {
        try makeDirectory(path)
        try fileSystem.synchronizeDirectory(path.containingDirectory)
      }
      try makeDirectory(directory)
      // Also when it was there: whoever made it may have died before this.
      try fileSystem.synchronizeDirectory(home)
    } catch {
      throw .writeFailed(error)
    }
  }

  /// Makes a missing directory for the owner of the one above: root must not lock a daemon out.
  private func makeDirectory(_ path: FilePath) throws(FileError) {
    try fileSystem.createDirectory(
      path, permissions: Self.directoryPermissions,
      owner: try fileSystem.ownerOfNewFile(in: path.containingDirectory))
  }
}
