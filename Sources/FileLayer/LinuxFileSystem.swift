internal import Glibc
package import SystemPackage

/// The real file system, through system calls.
package struct LinuxFileSystem: FileSystem {
  package init() {}

  package func status(of path: FilePath) throws(FileError) -> FileStatus? {
    var status = stat()
    guard unsafe lstat(path.string, &status) == 0 else {
      if Errno.current == .noSuchFileOrDirectory { return nil }
      throw FileError(.status, path, .current)
    }
    return FileStatus(status)
  }

  package func read(_ path: FilePath, maximumByteCount: Int) throws(FileError) -> [UInt8]? {
    do throws(FileError) {
      return try reading(path) { (descriptor, byteCount) throws(FileError) in
        guard byteCount <= maximumByteCount else { throw FileError(.read, path, .fileTooLarge) }
        return try piece(of: descriptor, path, byteCount: Int(byteCount))
      }
    } catch {
      guard error.operation == .read, error.errno == .noSuchFileOrDirectory else { throw error }
      return nil
    }
  }

  package func readPieces(
    of path: FilePath, _ body: ([UInt8]) throws(FileError) -> Void
  ) throws(FileError) {
    try reading(path) { (descriptor, _) throws(FileError) in
      while true {
        let piece = try piece(of: descriptor, path, byteCount: 1 << 20)
        if piece.isEmpty { return }
        try body(piece)
      }
    }
  }

  /// Opens a regular file for the duration of `body`, which gets its size.
  private func reading<Result>(
    _ path: FilePath, _ body: (Int32, Int64) throws(FileError) -> Result
  ) throws(FileError) -> Result {
    let descriptor = unsafe open(path.string, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else { throw FileError(.read, path, .current) }
    defer { _ = Glibc.close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw FileError(.read, path, .current) }
    guard FileStatus(status).kind == .regular else {
      throw FileError(.read, path, .invalidArgument)
    }
    return try body(descriptor, Int64(status.st_size))
  }

  /// The next bytes of a file; fewer at its end.
  private func piece(
    of descriptor: Int32, _ path: FilePath, byteCount: Int
  ) throws(FileError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: byteCount)
    var offset = 0
    while offset < bytes.count {
      let count = unsafe bytes.withUnsafeMutableBytes { buffer in
        unsafe Glibc.read(
          descriptor, buffer.baseAddress?.advanced(by: offset), buffer.count - offset)
      }
      if count < 0 && Errno.current == .interrupted { continue }
      guard count >= 0 else { throw FileError(.read, path, .current) }
      if count == 0 { break }
      offset += count
    }
    bytes.removeLast(bytes.count - offset)
    return bytes
  }

  package func entries(of directory: FilePath) throws(FileError) -> [String]? {
    guard let stream = unsafe opendir(directory.string) else {
      if Errno.current == .noSuchFileOrDirectory { return nil }
      throw FileError(.list, directory, .current)
    }
    defer { unsafe closedir(stream) }
    var names: [String] = []
    while true {
      // readdir(3) returns null for the end and for a failure; only errno distinguishes them.
      errno = 0
      guard let entry = unsafe readdir(stream) else {
        if errno != 0 { throw FileError(.list, directory, .current) }
        break
      }
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) {
          unsafe String(cString: $0)
        }
      }
      if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  package func createDirectory(
    _ path: FilePath, permissions: FilePermissions, owner: FileOwner?
  ) throws(FileError) {
    if unsafe mkdir(path.string, permissions.rawValue) == 0 {
      return try configure(newDirectory: path, permissions, owner)
    }
    let reason = Errno.current
    guard reason == .fileExists, try followedKind(of: path) == .directory else {
      throw FileError(.createDirectory, path, reason)
    }
  }

  package func create(
    _ path: FilePath, permissions: FilePermissions
  ) throws(FileError) -> any WritableFile {
    let descriptor = try OwnFile.create(path, permissions: permissions)
    return LinuxWritableFile(descriptor: descriptor.rawValue, path: path)
  }

  package func rename(_ path: FilePath, to target: FilePath) throws(FileError) {
    guard unsafe Glibc.rename(path.string, target.string) == 0 else {
      throw FileError(.rename, path, .current)
    }
  }

  package func rename(_ path: FilePath, toFree target: FilePath) throws(FileError) {
    // link(2) never replaces a file; the Glibc module lacks renameat2(2).
    if unsafe link(path.string, target.string) == 0 {
      _ = unsafe unlink(path.string)  // a leftover second name is harmless
      return
    }
    // A file system without hard links: checking and renaming are two separate steps.
    let refusals: [Errno] = [
      .invalidArgument, .noFunction, .notPermitted, .notSupported, .tooManyLinks,
    ]
    guard refusals.contains(Errno.current) else { throw FileError(.rename, path, .current) }
    guard try status(of: target) == nil else { throw FileError(.rename, path, .fileExists) }
    try rename(path, to: target)
  }

  package func remove(_ path: FilePath) throws(FileError) {
    guard unsafe unlink(path.string) == 0 || Errno.current == .noSuchFileOrDirectory else {
      throw FileError(.remove, path, .current)
    }
  }

  package func removeDirectory(_ path: FilePath) throws(FileError) {
    guard unsafe rmdir(path.string) == 0 || Errno.current == .noSuchFileOrDirectory else {
      throw FileError(.remove, path, .current)
    }
  }

  package func synchronizeDirectory(_ path: FilePath) throws(FileError) {
    let descriptor = unsafe open(path.string, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileError(.synchronize, path, .current) }
    defer { _ = Glibc.close(descriptor) }
    guard fsync(descriptor) == 0 else { throw FileError(.synchronize, path, .current) }
  }

  package func lock(
    _ path: FilePath, wait: Bool, owner: FileOwner?
  ) throws(FileError) -> FileLock? {
    while true {
      guard let file = try openLockFile(path, owner: owner) else { continue }
      let descriptor = file.rawValue
      let lock = FileLock { _ = Glibc.close(descriptor) }
      while flock(descriptor, LOCK_EX | (wait ? 0 : LOCK_NB)) != 0 {
        switch Errno.current {
        case .interrupted: continue
        case .wouldBlock: return nil
        case let reason: throw FileError(.lock, path, reason)
        }
      }
      // If its last holder removed the file, this lock excludes no other process.
      guard Self.hasName(descriptor, path) else { continue }
      try OwnFile.requireOneName(file, path)
      return lock
    }
  }

  /// Opens the existing lock file or creates one; nil if it appeared or disappeared in between.
  private func openLockFile(
    _ path: FilePath, owner: FileOwner?
  ) throws(FileError) -> FileDescriptor? {
    do throws(FileError) {
      return try OwnFile.open(path, .lock(owner: owner), for: .lock)
    } catch {
      guard error.errno == .noSuchFileOrDirectory else { throw error }
    }
    do throws(FileError) {
      return try OwnFile.create(path, permissions: .ownerReadWrite, for: .lock)
    } catch {
      guard error.errno == .fileExists else { throw error }
      return nil
    }
  }

  fileprivate static func hasName(_ descriptor: Int32, _ path: FilePath) -> Bool {
    var opened = stat()
    var named = stat()
    return unsafe fstat(descriptor, &opened) == 0 && lstat(path.string, &named) == 0
      && opened.st_dev == named.st_dev && opened.st_ino == named.st_ino
  }

  /// Sets permissions and owner through a descriptor.
  ///
  /// Between two calls by path, the owner of the parent directory could put another file there.
  private func configure(
    newDirectory path: FilePath, _ permissions: FilePermissions, _ owner: FileOwner?
  ) throws(FileError) {
    let descriptor = unsafe open(path.string, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else { throw FileError(.createDirectory, path, .current) }
    defer { _ = Glibc.close(descriptor) }
    // The process's umask must not change the permissions.
    guard fchmod(descriptor, permissions.rawValue) == 0 else {
      throw FileError(.createDirectory, path, .current)
    }
    if let owner, fchown(descriptor, owner.userID, owner.groupID) != 0 {
      throw FileError(.changeOwner, path, .current)
    }
  }

  private func followedKind(of path: FilePath) throws(FileError) -> FileStatus.Kind {
    var status = stat()
    guard unsafe stat(path.string, &status) == 0 else {
      throw FileError(.createDirectory, path, .current)
    }
    return FileStatus(status).kind
  }
}

extension Errno {
  static var current: Errno { Errno(rawValue: Glibc.errno) }
}

/// A descriptor open for writing.
final class LinuxWritableFile: WritableFile {
  private let descriptor: Int32
  private let path: FilePath

  init(descriptor: Int32, path: FilePath) {
    self.descriptor = descriptor
    self.path = path
  }

  func write(_ bytes: [UInt8]) throws(FileError) {
    var offset = 0
    while offset < bytes.count {
      let count = unsafe bytes.withUnsafeBytes { buffer in
        unsafe Glibc.write(
          descriptor, buffer.baseAddress?.advanced(by: offset), buffer.count - offset)
      }
      if count < 0 && Errno.current == .interrupted { continue }
      guard count > 0 else { throw FileError(.write, path, .current) }
      offset += count
    }
  }

  func changeOwner(to owner: FileOwner) throws(FileError) {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else {
      throw FileError(.changeOwner, path, .current)
    }
    if FileStatus(status).owner == owner { return }
    guard fchown(descriptor, owner.userID, owner.groupID) == 0 else {
      throw FileError(.changeOwner, path, .current)
    }
  }

  func synchronize() throws(FileError) {
    guard fsync(descriptor) == 0 else { throw FileError(.synchronize, path, .current) }
  }

  func rename(toFree target: FilePath) throws(FileError) {
    // By its descriptor, because another process can replace the name at any moment.
    let isLinked =
      unsafe linkat(
        AT_FDCWD, "/proc/self/fd/\(descriptor)", AT_FDCWD, target.string, AT_SYMLINK_FOLLOW) == 0
    let isOurs = LinuxFileSystem.hasName(descriptor, path)
    switch (isLinked, isOurs) {
    case (true, true): _ = unsafe unlink(path.string)
    case (true, false): break
    // The target exists, or there are no hard links, or no /proc.
    case (false, true): try LinuxFileSystem().rename(path, toFree: target)
    case (false, false): throw FileError(.rename, path, .resourceBusy)
    }
  }

  func close() {
    _ = Glibc.close(descriptor)
  }
}
