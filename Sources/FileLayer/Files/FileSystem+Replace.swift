package import SystemPackage

extension FileSystem {
  /// Replaces a whole file so that after a crash at any point either the old or the new contents
  /// are there, never neither and never a part.
  ///
  /// The steps are: a temporary file in the same directory, fsync, owner, rename, fsync of the
  /// directory. The new contents are durable on return. When a step up to the rename fails, the
  /// temporary file is removed and the old contents stand; when only the last one fails, the new
  /// contents are there, and a power cut may bring back the old.
  ///
  /// - Parameter owner: whom the file is given to; nil leaves it to the process.
  package func replace(
    _ path: FilePath, with bytes: [UInt8], permissions: FilePermissions, owner: FileOwner?
  ) throws(FileError) {
    let temporary = path.temporarySibling
    try remove(temporary)  // a leftover of a crash; the caller's lock keeps it from being in use
    do throws(FileError) {
      let file = try create(temporary, permissions: permissions)
      defer { file.close() }
      try file.write(bytes)
      if let owner { try file.changeOwner(to: owner) }
      try file.synchronize()
      try rename(temporary, to: path)
    } catch {
      if !error.isCrash { try? remove(temporary) }
      throw error
    }
    try synchronizeDirectory(path.containingDirectory)
  }
}

extension FilePath {
  /// The directory that holds this path's name; the working directory for a bare name.
  package var containingDirectory: FilePath {
    let directory = removingLastComponent()
    return directory.isEmpty ? "." : directory
  }

  /// The side name under which a file is prepared before it takes this path's place.
  package var temporarySibling: FilePath {
    var path = self
    path.removeLastComponent()
    path.append(".\(lastComponent?.string ?? "").new")
    return path
  }
}
