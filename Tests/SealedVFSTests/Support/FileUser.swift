import Glibc

/// Drops root's privileges for files in one thread, so that tests can check missing permissions.
enum FileUser {
  // setfsuid(2), which the module of the C library lacks.
  private typealias SetFileUser = @convention(c) (uid_t) -> Int32

  /// Runs a body whose files are opened as the user 65534; only the calling thread changes.
  static func withoutPrivileges<R>(_ body: () throws -> R) throws -> R {
    guard geteuid() == 0, let symbol = dlsym(nil, "setfsuid") else { return try body() }
    let setFileUser = unsafeBitCast(symbol, to: SetFileUser.self)
    _ = setFileUser(65534)
    defer { _ = setFileUser(0) }
    return try body()
  }
}
