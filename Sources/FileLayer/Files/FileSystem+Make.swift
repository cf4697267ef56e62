package import SystemPackage

extension FileSystem {
  /// Makes a file that did not exist, mode 0600, which gets its name when it is whole and durable.
  ///
  /// Its side name is one that nobody else gives: unlike
  /// ``replace(_:with:permissions:owner:)`` this works in directories that are not ours, where
  /// `.NAME.new` may be anybody's.
  ///
  /// - Throws: `EEXIST` when something has the name; it is left as it is.
  package func make(_ path: FilePath, with bytes: [UInt8]) throws(FileError) {
    let temporary = path.ownSibling
    let directory = path.containingDirectory
    let owner = try ownerOfNewFile(in: directory)
    try remove(temporary)  // a leftover of a crash
    do throws(FileError) {
      let file = try create(temporary, permissions: .ownerReadWrite)
      defer { file.close() }
      try file.write(bytes)
      if let owner { try file.changeOwner(to: owner) }
      try file.synchronize()
      try rename(temporary, toFree: path)
    } catch {
      if !error.isCrash { try? remove(temporary) }
      throw error
    }
    try synchronizeDirectory(directory)
  }
}

extension FilePath {
  /// The side name under which a new file is prepared where others have files too.
  var ownSibling: FilePath {
    var path = self
    path.removeLastComponent()
    path.append(".\(lastComponent?.string ?? "").datavault.new")
    return path
  }
}
