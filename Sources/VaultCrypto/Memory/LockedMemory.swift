internal import COpenSSL
internal import Glibc
internal import Synchronization

/// One anonymous mapping of whole pages, locked, left out of core dumps, wiped when it goes.
///
/// See mlock(2), madvise(2) `MADV_DONTDUMP`.
@safe public struct LockedMemory: ~Copyable, @unchecked Sendable {
  // Sendable: the pages belong to one owner at a time; sharing is the owner's to synchronise.
  private let base: UnsafeMutableRawPointer
  private let capacity: Int

  /// Whether every secret of this process so far could be locked into memory.
  public static var isComplete: Bool { !lockWasRefused.load(ordering: .relaxed) }

  /// Whether the caller is the one to warn that secrets may reach the swap: true once a process,
  /// after the first refusal.
  public static func takeWarning() -> Bool {
    !isComplete && !wasWarned.exchange(true, ordering: .relaxed)
  }

  private static let lockWasRefused = Atomic<Bool>(false)
  private static let wasWarned = Atomic<Bool>(false)

  /// Sees the whole memory between its wiping and its return to the system: for the test that
  /// proves the wiping.
  @TaskLocal static var observeRelease: (@Sendable (RawSpan) -> Void)?

  init(byteCount: Int) {
    precondition(byteCount >= 0, "a secret has no negative length")
    let pageByteCount = sysconf(Int32(_SC_PAGESIZE))
    capacity = max(1, (byteCount + pageByteCount - 1) / pageByteCount) * pageByteCount
    let mapping = unsafe mmap(
      nil, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let mapping = unsafe mapping, unsafe mapping != MAP_FAILED else {
      preconditionFailure("the system has no memory left for a secret of \(byteCount) bytes")
    }
    unsafe base = mapping
    unsafe madvise(base, capacity, MADV_DONTDUMP)
    if unsafe mlock(base, capacity) != 0 {
      Self.lockWasRefused.store(true, ordering: .relaxed)
    }
  }

  func bytes(_ byteCount: Int) -> UnsafeMutableRawBufferPointer {
    unsafe UnsafeMutableRawBufferPointer(start: base, count: byteCount)
  }

  deinit {
    unsafe OPENSSL_cleanse(base, capacity)
    if let observe = Self.observeRelease {
      let memory = unsafe UnsafeRawBufferPointer(start: base, count: capacity)
      observe(unsafe RawSpan(_unsafeBytes: memory))
    }
    unsafe munmap(base, capacity)
  }
}
