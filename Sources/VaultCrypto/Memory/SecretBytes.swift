internal import COpenSSL
internal import Glibc
internal import Synchronization

/// Bytes that must not outlive their use: a key, a password, a plaintext.
///
/// The memory is a mapping of its own, of whole pages: locked against swapping, left out of core
/// dumps, and wiped over its whole capacity before it is given back. There is no description, no
/// equality operator and no implicit copy; contents are reached only inside a closure.
///
/// If the system refuses to lock memory (`RLIMIT_MEMLOCK`), the secret still works and
/// ``LockedMemory/isComplete`` turns false, for programs that want to warn.
public struct SecretBytes: ~Copyable, Sendable {
  private let memory: LockedMemory

  /// The number of secret bytes, which may be zero.
  public let byteCount: Int

  /// Makes a secret of `byteCount` zero bytes and lets `body` fill it.
  ///
  /// - Throws: what `body` throws; the memory is wiped then.
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

  /// Copies bytes that lie elsewhere; wiping the original is the caller's business.
  public init(copying bytes: RawSpan) {
    unsafe self.init(byteCount: bytes.byteCount) { target in
      unsafe bytes.withUnsafeBytes { source in unsafe target.copyMemory(from: source) }
    }
  }

  /// Copies an array, which remains in the heap unwiped: for constants and tests.
  public init(copying bytes: [UInt8]) {
    unsafe self.init(copying: bytes.span.bytes)
  }

  /// Draws `byteCount` random bytes.
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

  /// A part of the secret, as a secret of its own.
  ///
  /// - Precondition: the range lies within the secret.
  public borrowing func copy(_ range: Range<Int>) -> SecretBytes {
    withBytes { SecretBytes(copying: $0.extracting(range)) }
  }

  /// Whether two secrets are equal, in time that depends on their length alone.
  public static func isEqual(_ a: borrowing SecretBytes, _ b: borrowing SecretBytes) -> Bool {
    unsafe a.withUnsafeBytes { left in
      unsafe b.withUnsafeBytes { right in
        isEqualInConstantTime(
          unsafe RawSpan(_unsafeBytes: left), unsafe RawSpan(_unsafeBytes: right))
      }
    }
  }
}

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

/// Whether two byte sequences are equal, in time that depends on their length alone.
///
/// The one comparison for secrets and tags. Sequences of different length are unequal at once.
public func isEqualInConstantTime(_ a: RawSpan, _ b: RawSpan) -> Bool {
  guard a.byteCount == b.byteCount else { return false }
  if a.byteCount == 0 { return true }
  return unsafe a.withUnsafeBytes { left in
    unsafe b.withUnsafeBytes { right in
      unsafe CRYPTO_memcmp(left.baseAddress, right.baseAddress, left.count) == 0
    }
  }
}
