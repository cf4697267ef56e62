package import SystemPackage

extension FileSystem {
  /// Makes a file that did not exist, mode 0600, which gets its name when it is whole and durable.
  ///
  /// It is made under a side name that nobody has: unlike ``replace(_:with:permissions:owner:)`` this
  /// works in a directory that is not ours, where a file of such a name may be anybody's. What a crash
  /// leaves there stays.
  ///
  /// - Throws: `EEXIST` when something has the name; it is left as it is.
  package func make(_ path: FilePath, with bytes: [UInt8]) throws(FileError) {
    let directory = path.containingDirectory
    let owner = try ownerOfNewFile(in: directory)
    let (file, temporary) = try createBeside(path)
    defer { file.close() }
    do throws(FileError) {
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

  /// Makes `.NAME.new`, or `.NAME-2.new` and so on where that is taken.
  private func createBeside(
    _ path: FilePath
  ) throws(FileError) -> (any WritableFile, FilePath) {
    var number = 1
    while true {
      let temporary = path.temporarySibling(number)
      do throws(FileError) {
        return (try create(temporary, permissions: .ownerReadWrite), temporary)
      } catch {
        guard error.errno == .fileExists, !error.isCrash, number < maximumSideNameCount else {
          throw error
        }
      }
      number += 1
    }
  }
}

/// More than crashes leave behind.
private let maximumSideNameCount = 1000

extension FilePath {
  /// The side names of which a new file takes the first that is free.
  fileprivate func temporarySibling(_ number: Int) -> FilePath {
    guard number > 1 else { return temporarySibling }
    var path = self
    path.removeLastComponent()
    path.append(".\(lastComponent?.string ?? "")-\(number).new")
    return path
  }
}
