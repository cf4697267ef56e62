internal import Glibc
package import SystemPackage

/// The file operations of a store, as a protocol, so that a test can record, interrupt and replay
/// every durable step.
///
/// The calls block, so callers must run them on an executor that can block. A missing file is a
/// result, never an error. Every other obstacle is an error, so that an unreadable file is not
/// mistaken for a missing one.
package protocol FileSystem: Sendable {
  /// The status of `path` itself, without following a symbolic link (lstat(2)); nil if nothing
  /// exists there.
  func status(of path: FilePath) throws(FileError) -> FileStatus?

  /// All bytes of a regular file; nil if it does not exist.
  ///
  /// - Throws: `EFBIG` for a file larger than `maximumByteCount`; `ELOOP` for a symbolic link;
  ///   `EINVAL` for anything else that is not a regular file.
  func read(_ path: FilePath, maximumByteCount: Int) throws(FileError) -> [UInt8]?

  /// Reads a regular file from its beginning to its end, in pieces of up to 1 MiB.
  ///
  /// - Throws: as ``read(_:maximumByteCount:)``; `ENOENT` for a missing file; the error of `body`.
  func readPieces(
    of path: FilePath, _ body: ([UInt8]) throws(FileError) -> Void
  ) throws(FileError)

  /// The sorted names in a directory; nil if it does not exist.
  func entries(of directory: FilePath) throws(FileError) -> [String]?

  /// Creates a directory with exactly these permissions; an existing one is unchanged.
  ///
  /// - Parameter owner: the owner of a new directory; nil for the process's user.
  func createDirectory(
    _ path: FilePath, permissions: FilePermissions, owner: FileOwner?
  ) throws(FileError)

  /// Creates a file with exactly these permissions and opens it for writing; `EEXIST` if it exists.
  func create(
    _ path: FilePath, permissions: FilePermissions
  ) throws(FileError) -> any WritableFile

  /// Renames `path` to `target` and replaces `target` atomically; durable after
  /// ``synchronizeDirectory(_:)``.
  func rename(_ path: FilePath, to target: FilePath) throws(FileError)

  /// Renames a file to `target`, which must not exist (`EEXIST` otherwise); durable after
  /// ``synchronizeDirectory(_:)``.
  func rename(_ path: FilePath, toFree target: FilePath) throws(FileError)

  /// Removes a file; a missing file is not an error.
  func remove(_ path: FilePath) throws(FileError)

  /// Removes an empty directory; a missing one is not an error.
  func removeDirectory(_ path: FilePath) throws(FileError)

  /// Makes the names in a directory durable.
  func synchronizeDirectory(_ path: FilePath) throws(FileError)

  /// Takes an exclusive flock(2) on a dedicated file, which is created with mode 0600 if it is
  /// missing.
  ///
  /// - Parameter owner: a further accepted owner of the file when root asks, besides the
  ///   directory's owner.
  /// - Returns: the lock, held until it is released; nil if another process or handle holds it and
  ///   `wait` is false.
  /// - Throws: an error with a ``FileError/refusal`` for a file of another user.
  func lock(_ path: FilePath, wait: Bool, owner: FileOwner?) throws(FileError) -> FileLock?
}

extension FileSystem {
  /// Takes the lock on a file of the process's user, or for root also of the directory's owner.
  package func lock(_ path: FilePath, wait: Bool) throws(FileError) -> FileLock? {
    try lock(path, wait: wait, owner: nil)
  }

  /// Creates a directory that belongs to the process's user.
  package func createDirectory(
    _ path: FilePath, permissions: FilePermissions
  ) throws(FileError) {
    try createDirectory(path, permissions: permissions, owner: nil)
  }
}

/// A file open for writing, from ``FileSystem/create(_:permissions:)``.
package protocol WritableFile: Sendable {
  /// Appends all bytes.
  func write(_ bytes: [UInt8]) throws(FileError)

  /// Changes the file's owner; does nothing if the owner is already right.
  func changeOwner(to owner: FileOwner) throws(FileError)

  /// Makes contents and length durable (fsync(2)).
  func synchronize() throws(FileError)

  /// Renames the file as ``FileSystem/rename(_:toFree:)`` does, or fails with `EBUSY` if another
  /// process has put its own file under the present name.
  func rename(toFree target: FilePath) throws(FileError)

  /// Closes the file, which must not be used afterwards.
  func close()
}

extension FileSystem {
  /// Creates a file with mode 0600, which gets its name when it is complete and durable.
  ///
  /// The temporary name is specific to this software. Unlike
  /// ``replace(_:with:permissions:owner:durably:)``, this therefore works in shared directories,
  /// where `.NAME.new` can belong to others.
  ///
  /// - Parameter owner: the owner of the file; nil for the process's user.
  /// - Throws: `EEXIST` if the path exists; the existing file is unchanged.
  package func make(
    _ path: FilePath, with bytes: [UInt8], owner: FileOwner? = nil
  ) throws(FileError) {
    try write(
      bytes, to: path, through: path.ownSibling, permissions: .ownerReadWrite, owner: owner,
      replaces: false)
  }

  /// Copies a regular file of any size to a new file with mode 0600, whose contents are durable on return.
  ///
  /// - Parameter progress: called with the bytes written so far.
  package func copyFile(
    _ source: FilePath, to target: FilePath, owner: FileOwner?, progress: (Int64) -> Void = { _ in }
  ) throws(FileError) {
    let file = try create(target, permissions: .ownerReadWrite)
    defer { file.close() }
    if let owner { try file.changeOwner(to: owner) }
    var byteCount: Int64 = 0
    try readPieces(of: source) { (piece) throws(FileError) in
      try file.write(piece)
      byteCount += Int64(piece.count)
      progress(byteCount)
    }
    try file.synchronize()
  }

  /// Replaces a whole file, so that a crash leaves either the complete old or the complete new
  /// contents.
  ///
  /// The steps are: a temporary file in the same directory, fsync, owner, rename, fsync of the
  /// directory. The new contents are durable on return. If a step up to the rename fails, the
  /// temporary file is removed and the old contents stay. If only the last step fails, the new
  /// contents are in place, and a power cut can bring back the old ones.
  ///
  /// - Parameters:
  ///   - owner: the new owner of the file; nil for the process's user.
  ///   - durably: if false, both calls of fsync are left out, and a power cut can leave the old
  ///     contents, the new ones or an empty file.
  package func replace(
    _ path: FilePath, with bytes: [UInt8], permissions: FilePermissions, owner: FileOwner?,
    durably: Bool = true
  ) throws(FileError) {
    // The caller's lock ensures that the temporary file is not in use.
    try write(
      bytes, to: path, through: path.temporarySibling, permissions: permissions, owner: owner,
      replaces: true, durably: durably)
  }

  /// Writes a whole file under a temporary name and renames it to `path`.
  private func write(
    _ bytes: [UInt8], to path: FilePath, through temporary: FilePath, permissions: FilePermissions,
    owner: FileOwner?, replaces: Bool, durably: Bool = true
  ) throws(FileError) {
    try remove(temporary)  // a leftover of a crash
    do throws(FileError) {
      let file = try create(temporary, permissions: permissions)
      defer { file.close() }
      try file.write(bytes)
      if let owner { try file.changeOwner(to: owner) }
      if durably { try file.synchronize() }
      if replaces {
        try rename(temporary, to: path)
      } else {
        try file.rename(toFree: path)
      }
    } catch {
      // With EBUSY, the name belongs to another process's file. Otherwise the next replacement removes what remains.
      if !error.isCrash, error.errno != .resourceBusy { try? remove(temporary) }
      throw error
    }
    if durably { try synchronizeDirectory(path.containingDirectory) }
  }
}

extension FilePath {
  /// The directory that contains this path; the working directory for a bare name.
  package var containingDirectory: FilePath {
    // FilePath's own functions check and copy it many times.
    let path = string
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return slash == path.startIndex ? "/" : FilePath(String(path[..<slash]))
  }

  /// The path with symbolic links resolved, without `.` and `..`.
  ///
  /// Of a path that does not exist, for example because its file system is not mounted, the existing
  /// part is resolved and the rest is appended. A link to a missing file counts as existing. A path
  /// that resolves to one that is not UTF-8 stays as it is.
  package func resolvingLinks() -> FilePath {
    var (there, rest) = (self, FilePath())
    var linksLeft = 40  // Linux follows no more; links can form a loop
    while true {
      if let resolved = unsafe realpath(there.isEmpty ? "." : there.string, nil) {
        defer { unsafe free(resolved) }
        // A repaired name would be that of another directory.
        guard let path = unsafe String(validatingCString: resolved) else { return self }
        return FilePath(path).pushing(rest).lexicallyNormalized()
      }
      if linksLeft > 0, let target = there.linkTarget {
        linksLeft -= 1
        there = there.removingLastComponent().pushing(target)
        continue
      }
      guard let name = there.lastComponent else { return self }
      there.removeLastComponent()
      rest = FilePath(root: nil, [name]).pushing(rest)
    }
  }

  /// The content of a symbolic link; nil for anything else.
  private var linkTarget: FilePath? {
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: Int(PATH_MAX)) { buffer, count in
      count = unsafe max(readlink(string, buffer.baseAddress!, buffer.count), 0)
    }
    guard !bytes.isEmpty, let target = String(validating: bytes, as: UTF8.self) else { return nil }
    return FilePath(target)
  }

  /// The path as one word of a shell's command, quoted if it needs that: for hints.
  package var shellWord: String {
    let isPlain = string.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
      default: "/._+,:@%=-".utf8.contains(byte)
      }
    }
    return isPlain ? string : "'\(string.replacing("'", with: "'\\''"))'"
  }

  /// The temporary name for a file that will replace this path.
  package var temporarySibling: FilePath { hiddenSibling(".new") }

  /// The temporary name for a new file in a shared directory.
  var ownSibling: FilePath { hiddenSibling(".datavault.new") }

  private func hiddenSibling(_ suffix: String) -> FilePath {
    let path = string
    let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
    let name = slash.map(path.utf8.index(after:)) ?? path.startIndex
    return FilePath("\(path[..<name]).\(path[name...])\(suffix)")
  }
}
