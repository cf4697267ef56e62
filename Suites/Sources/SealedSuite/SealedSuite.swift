internal import CSealedSuite
internal import SealedVFS
internal import Synchronization
internal import SystemPackage
internal import VaultCrypto

/// The registrations of the databases that this process opened, by path.
private let registrations = Mutex<[String: Entry]>([:])

private struct Entry {
  let base: String
  let registration: KeyRegistration
}

/// The key of every database; not a secret.
private func testKey() -> SecretBytes {
  SecretBytes(copying: Array(0..<32))
}

/// Installs the sealed VFS once.
@_cdecl("sealedsuite_swift_install")
public func install() -> Int32 {
  (try? SealedVFS.install()) == nil ? SQLITE_ERROR : SQLITE_OK
}

/// Registers the test key for a database, for as long as the process lives.
@_cdecl("sealedsuite_swift_register")
public func register(
  _ path: UnsafePointer<CChar>, _ base: UnsafePointer<CChar>, _ setsReserve: Int32
) -> Int32 {
  let path = unsafe String(cString: path)
  let base = unsafe String(cString: base)
  return registrations.withLock { registrations in
    if registrations[path]?.base == base { return SQLITE_OK }
    guard
      let registration = try? SealedVFS.register(
        key: testKey(), at: FilePath(path), over: base, setsReserve: setsReserve != 0)
    else { return SQLITE_CANTOPEN }
    registrations[path] = Entry(base: base, registration: registration)
    return SQLITE_OK
  }
}

/// Removes the key of a path, at which a test has put a plain database.
@_cdecl("sealedsuite_swift_forget")
public func forget(_ path: UnsafePointer<CChar>) {
  let path = unsafe String(cString: path)
  registrations.withLock { $0[path] = nil }
}

/// Removes the keys of all databases over a VFS that a test is about to free.
@_cdecl("sealedsuite_swift_forget_base")
public func forget(over base: UnsafePointer<CChar>) {
  let base = unsafe String(cString: base)
  registrations.withLock { registrations in
    registrations = registrations.filter { $0.value.base != base }
  }
}
