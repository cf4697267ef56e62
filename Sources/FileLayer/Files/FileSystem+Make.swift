package import SystemPackage

extension FileSystem {
  /// Makes a file that did not exist, mode 0600, which gets its name when it is whole and durable.
  ///
  /// - Throws: `EEXIST` when something has the name; it is left as it is.
  package func make(_ path: FilePath, with bytes: [UInt8]) throws(FileError) {
    let temporary = path.temporarySibling
    let directory = path.containingDirectory
    let owner = try ownerOfNewFile(in: directory)
    try remove(temporary)
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
