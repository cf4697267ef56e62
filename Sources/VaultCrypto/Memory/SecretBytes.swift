internal import COpenSSL
internal import Glibc
internal import Synchronization

/// A secret that must not outlive its use: a key, a password, a plaintext.
///
/// The memory is a mapping of its own, of whole pages. It is locked against swapping, excluded from
/// core dumps, and wiped over its whole capacity before it is released. The type has no
/// description, no equality operator and no implicit copy. Its contents are reached only inside a
/// closure.
///
/// If the system refuses to lock memory (`RLIMIT_MEMLOCK`), the secret still works, and
/// ``LockedMemory/isComplete`` becomes false, for programs that want to warn.
public struct SecretBytes: ~Copyable, Sendable {
  private let memory: LockedMemory

  /// The number of secret bytes, which can be zero.
  public let byteCount: Int

  /// Makes a secret of `byteCount` zero bytes, which `body` fills.
  ///
  /// - Throws: the error of `body`; the memory is then wiped.
  public init<E>(
    byteCount: Int,
    initializingWith body: (UnsafeMutableRawBufferPointer) throws(E) -> Void
  ) throws(E) {
    self.memory = LockedMemory(byteCount: byteCount)
    self.byteCount = byteCount
    try unsafe body(memory.bytes(byteCount))
  }

  /// Makes a secret of zero bytes, to be filled in place.
  package init(zeroCount byteCount: Int) {
    self.memory = LockedMemory(byteCount: byteCount)
    self.byteCount = byteCount
  }

  /// Copies bytes from elsewhere; the caller must wipe the original.
  public init(copying bytes: RawSpan) {
    unsafe self.init(byteCount: bytes.byteCount) { target in
      unsafe bytes.withUnsafeBytes { source in unsafe target.copyMemory(from: source) }
    }
  }

  /// Copies an array, which stays unwiped in the heap: for constants and tests.
  public init(copying bytes: [UInt8]) {
    unsafe self.init(copying: bytes.span.bytes)
  }

  /// Makes a secret of `byteCount` random bytes.
  public static func random(byteCount: Int, from source: RandomSource = .system) -> SecretBytes {
    unsafe SecretBytes(byteCount: byteCount) { unsafe source.fill($0) }
  }

  /// Lends the contents for the duration of `body`.
  public borrowing func withBytes<R: ~Copyable, E>(
    _ body: (RawSpan) throws(E) -> R
  ) throws(E) -> R {
    try unsafe body(RawSpan(_unsafeBytes: UnsafeRawBufferPointer(memory.bytes(byteCount))))
  }

  /// Lends the contents as a pointer, for C.
  public borrowing func withUnsafeBytes<R: ~Copyable, E>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    try unsafe body(UnsafeRawBufferPointer(memory.bytes(byteCount)))
  }

  /// Lends the contents for changing.
  public mutating func withUnsafeMutableBytes<R: ~Copyable, E>(
    _ body: (UnsafeMutableRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    try unsafe body(memory.bytes(byteCount))
  }

  /// A second secret with the same contents.
  public borrowing func copy() -> SecretBytes {
    withBytes { SecretBytes(copying: $0) }
  }

  /// A copy of a part of the secret.
  ///
  /// - Precondition: the range lies within the secret.
  public borrowing func copy(_ range: Range<Int>) -> SecretBytes {
    withBytes { SecretBytes(copying: $0.extracting(range)) }
  }

  /// Whether two secrets are equal, in time that depends on their length alone.
  public static func isEqual(_ a: borrowing SecretBytes, _ b: borrowing SecretBytes) -> Bool {
    a.withBytes { left in b.withBytes { right in isEqualInConstantTime(left, right) } }
  }
}

/// An anonymous mapping of whole pages: locked, excluded from core dumps, wiped when it is
/// released.
///
/// See mlock(2), madvise(2) `MADV_DONTDUMP`.
@safe public struct LockedMemory: ~Copyable, @unchecked Sendable {
  // Sendable: the pages have one owner at a time, who must synchronise any sharing.
  private let base: UnsafeMutableRawPointer
  private let capacity: Int

  /// Whether all secrets of this process so far could be locked into memory.
  public static var isComplete: Bool { !lockWasRefused.load(ordering: .relaxed) }

  /// Whether the caller must warn that secrets can reach the swap.
  ///
  /// It is true once in a process, after the first refusal.
  public static func takeWarning() -> Bool {
    !isComplete && !wasWarned.exchange(true, ordering: .relaxed)
  }

  private static let lockWasRefused = Atomic<Bool>(false)
  private static let wasWarned = Atomic<Bool>(false)

  /// Receives the whole memory between its wiping and its release, for the test of the wiping.
  @TaskLocal static var observeRelease: (@Sendable (RawSpan) -> Void)?

  init(byteCount: Int) {
    precondition(byteCount >= 0, "the length of a secret must not be negative")
    let pageByteCount = sysconf(Int32(_SC_PAGESIZE))
    capacity = max(1, (byteCount + pageByteCount - 1) / pageByteCount) * pageByteCount
    let mapping = unsafe mmap(
      nil, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let mapping = unsafe mapping, unsafe mapping != MAP_FAILED else {
      preconditionFailure("the system has no memory for a secret of \(byteCount) bytes")
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

/// Whether two byte sequences are equal, in time that depends on their length alone.
///
/// This is the only comparison for secrets and tags. Sequences of different lengths return false
/// without a comparison.
public func isEqualInConstantTime(_ a: RawSpan, _ b: RawSpan) -> Bool {
  guard a.byteCount == b.byteCount else { return false }
  if a.byteCount == 0 { return true }
  return unsafe a.withUnsafeBytes { left in
    unsafe b.withUnsafeBytes { right in
      unsafe CRYPTO_memcmp(left.baseAddress, right.baseAddress, left.count) == 0
    }
  }
}

/// Overwrites bytes with zeros, even if nothing reads them afterwards.
package func wipe(_ bytes: inout [UInt8]) {
  unsafe bytes.withUnsafeMutableBytes { unsafe OPENSSL_cleanse($0.baseAddress, $0.count) }
}

/// Overwrites memory with zeros, even if nothing reads it afterwards.
package func wipe(_ bytes: UnsafeMutableRawBufferPointer) {
  unsafe OPENSSL_cleanse(bytes.baseAddress, bytes.count)
}
