import FileLayer
import Foundation
import Glibc
import SystemPackage
import TestSupport
import Testing

@Suite struct FileLockTests {
  let directory = ScratchFolder()
  let files = LinuxFileSystem()

  @Test func `a lock is held by only one handle`() throws {
    let first = try #require(try files.lock(directory("lock"), wait: false))
    #expect(try files.lock(directory("lock"), wait: false) == nil)
    first.release()
    let second = try #require(try files.lock(directory("lock"), wait: false))
    first.release()  // a second call must not release the other lock
    #expect(try files.lock(directory("lock"), wait: false) == nil)
    second.release()
  }

  @Test func `a lock is released with its last reference`() throws {
    do {
      let lock = try #require(try files.lock(directory("lock"), wait: false))
      _ = lock
    }
    #expect(try files.lock(directory("lock"), wait: false) != nil)
  }

  @Test func `a lock excludes another process`() async throws {
    let lock = try #require(try files.lock(directory("lock"), wait: false))
    let path = directory("lock").string
    await #expect(processExitsWith: .success) { [path = path as String] in
      exit(try LinuxFileSystem().lock(FilePath(path), wait: false) == nil ? 0 : 2)
    }
    lock.release()
    await #expect(processExitsWith: .success) { [path = path as String] in
      exit(try LinuxFileSystem().lock(FilePath(path), wait: false) != nil ? 0 : 2)
    }
  }

  @Test func `the death of a process releases its lock`() async throws {
    let path = directory("lock").string
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let lock = try LinuxFileSystem().lock(FilePath(path), wait: false)
      guard lock != nil else { exit(2) }
      kill(getpid(), SIGKILL)
      withExtendedLifetime(lock) {}
    }
    #expect(try files.lock(directory("lock"), wait: false) != nil)
  }

  @Test func `a waiting caller gets the lock after its release`() async throws {
    let lock = try #require(try files.lock(directory("lock"), wait: false))
    let path = directory("lock")
    let waiter = Thread { _ = try? LinuxFileSystem().lock(path, wait: true)?.release() }
    waiter.start()
    var status = stat()
    try #require(stat(path.string, &status) == 0)
    // See proc_locks(5).
    let wait = try Regex("-> FLOCK .*:\(status.st_ino) ")
    try await eventually("it waits") {
      try ProcFile.text("/proc/locks").firstMatch(of: wait) != nil
    }
    #expect(!waiter.isFinished)
    lock.release()
    try await eventually { waiter.isFinished }
  }

  @Test func `lock(busyTimeout:) waits no longer than its timeout`() throws {
    let lock = try #require(try files.lock(directory("lock"), wait: false))
    let start = ContinuousClock.now
    #expect(try files.lock(directory("lock"), busyTimeout: .milliseconds(40)) == nil)
    #expect(start.duration(to: .now) >= .milliseconds(40))
    #expect(try files.lock(directory("lock"), busyTimeout: .zero) == nil)
    lock.release()
    #expect(try files.lock(directory("lock"), busyTimeout: .zero) != nil)
  }

  @Test func `lock(busyTimeout:) takes a lock that is released before the timeout`() throws {
    let lock = try #require(try files.lock(directory("lock"), wait: false))
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(30)) { lock.release() }
    #expect(try files.lock(directory("lock"), busyTimeout: .seconds(20)) != nil)
  }

  @Test func `a lock file is private to its owner`() throws {
    let lock = try files.lock(directory("lock"), wait: false)
    #expect(try files.status(of: directory("lock"))?.permissions == .ownerReadWrite)
    withExtendedLifetime(lock) {}
  }

  @Test func `lock() refuses a symbolic link`() throws {
    try #require(symlink(directory("elsewhere").string, directory("lock").string) == 0)
    let error = #expect(throws: FileError.self) {
      try files.lock(directory("lock"), wait: false)
    }
    #expect(error?.errno == .tooManySymbolicLinkLevels)
    #expect(try directory.names() == ["lock"])
  }
}
