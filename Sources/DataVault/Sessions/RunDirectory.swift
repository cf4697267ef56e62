internal import FileLayer
internal import Glibc
internal import SystemPackage

/// The directory `<home>/run` with the sockets of a home's processes.
///
/// Everything is reached through the descriptor of the directory, so that no other process can exchange it. Socket
/// paths are short for the same reason: `/proc/self/fd/<descriptor>/<name>`.
final class RunDirectory: Sendable {
  let descriptor: Int32
  let path: FilePath
  /// The user who owns the home.
  let owner: UInt32

  private init(_ descriptor: Int32, _ path: FilePath, owner: UInt32) {
    self.descriptor = descriptor
    self.path = path
    self.owner = owner
  }

  deinit { _ = close(descriptor) }

  /// Opens the directory.
  ///
  /// - Parameter creates: whether to create it for the owner of the home.
  /// - Returns: nil if it does not exist.
  /// - Throws: `foreignFile`, `permissionsTooOpen`, `unreadable`, `writeFailed`.
  static func open(_ path: FilePath, creates: Bool = false) throws(VaultError) -> RunDirectory? {
    let home = path.removingLastComponent()
    let homeDescriptor = unsafe Glibc.open(home.string, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard homeDescriptor >= 0 else {
      if errno == ENOENT { return nil }
      throw .unreadable(FileError(.list, home, .current))
    }
    defer { _ = close(homeDescriptor) }
    var status = stat()
    guard unsafe fstat(homeDescriptor, &status) == 0 else {
      throw .unreadable(FileError(.status, home, .current))
    }
    let owner = status.st_uid
    let group = status.st_gid
    let isNew = unsafe creates && mkdirat(homeDescriptor, "run", 0o700) == 0
    if creates, !isNew, errno != EEXIST {
      throw .writeFailed(FileError(.createDirectory, path, .current))
    }
    let descriptor = unsafe openat(
      homeDescriptor, "run", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else {
      switch errno {
      case ENOENT where !creates: return nil
      case ELOOP, ENOTDIR: throw refusal(path, "it is a symbolic link or no directory")
      default: throw .unreadable(FileError(.list, path, .current))
      }
    }
    let directory = RunDirectory(descriptor, path, owner: owner)
    // By the descriptor, because another directory can have the name by now.
    if isNew, geteuid() == 0, owner != 0 { _ = fchown(descriptor, owner, group) }
    guard unsafe fstat(descriptor, &status) == 0 else {
      throw .unreadable(FileError(.status, path, .current))
    }
    guard directory.accepts(status.st_uid) else {
      throw refusal(path, "it belongs to user \(status.st_uid)")
    }
    guard status.st_mode & 0o077 == 0 else {
      throw VaultError(
        .permissionsTooOpen, "other users can use \(path)", hint: "chmod 700 \(path.shellWord)")
    }
    return directory
  }

  /// Throws if only processes of another user can see the kernel's sessions for this home.
  static func requireOwnHome(of store: any VaultStore) throws(VaultError) {
    guard let home = store.processDirectory?.removingLastComponent() else { return }
    var status = stat()
    guard unsafe stat(home.string, &status) == 0, status.st_uid != geteuid() else { return }
    throw VaultError(
      .sessionsUnavailable,
      "\(home) belongs to user \(status.st_uid), whose sessions this process does not see",
      hint: "run the command as that user")
  }

  private static func refusal(_ path: FilePath, _ reason: String) -> VaultError {
    VaultError(
      .foreignFile, "refusing the sockets in \(path): \(reason)", hint: "remove \(path)")
  }

  /// Whether this user can own what lies here: the owner of the home, or root.
  func accepts(_ userID: UInt32) -> Bool { userID == owner || userID == 0 }

  /// The names of what looks like a listener's socket, in ascending order.
  func names() throws(VaultError) -> [String] {
    let names = try converting(VaultError.unreadable) { () throws(FileError) in
      try LinuxFileSystem().entries(of: FilePath("/proc/self/fd/\(descriptor)")) ?? []
    }
    return names.filter { $0.hasSuffix(".sock") }
  }

  /// What an entry of the directory is.
  enum EntryKind {
    /// A socket, of which nothing else is known.
    case socket
    case gone
    case refused(_ reason: String)
  }

  func kind(of name: String) -> EntryKind {
    var status = stat()
    guard unsafe fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
      return errno == ENOENT ? .gone : .refused("\(Errno.current)")
    }
    guard status.st_mode & S_IFMT == S_IFSOCK else { return .refused("it is not a socket") }
    guard accepts(status.st_uid) else { return .refused("it belongs to user \(status.st_uid)") }
    return .socket
  }

  func remove(_ name: String) { unsafe unlinkat(descriptor, name, 0) }

  /// Removes the sockets that killed processes have left.
  ///
  /// The caller holds the lock.
  func removeStaleSockets() throws(VaultError) {
    for name in try names() {
      guard case .socket = kind(of: name) else { continue }
      do throws(Errno) {
        _ = try UnixSocket.connect(to: name, in: self)
      } catch {
        if error == .connectionRefused { remove(name) }
      }
    }
  }

  /// Runs `body` while no other process listens or removes sockets here.
  ///
  /// - Throws: `busy` if another process holds the lock for longer than the time limit.
  func locked<R>(
    timeLimit: Duration, _ body: () throws(VaultError) -> R
  ) throws(VaultError) -> R {
    // A lock belongs to an open file: each caller needs one of its own.
    let own = unsafe openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard own >= 0 else { throw .unreadable(FileError(.lock, path, .current)) }
    defer { _ = close(own) }
    let deadline = ContinuousClock.now + timeLimit
    while flock(own, LOCK_EX | LOCK_NB) != 0 {
      guard errno == EWOULDBLOCK || errno == EINTR else {
        throw .unreadable(FileError(.lock, path, .current))
      }
      guard ContinuousClock.now < deadline else {
        throw .busy("making a socket", lock: path, after: timeLimit)
      }
      usleep(2000)
    }
    return try body()
  }

  /// Lends the address of a name here, for bind(2) and connect(2).
  func withAddress(of name: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32
  {
    let path = "/proc/self/fd/\(descriptor)/\(name)"
    var address = sockaddr_un()
    guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else {
      errno = ENAMETOOLONG
      return -1
    }
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
    return unsafe withUnsafePointer(to: address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }
}
