internal import Glibc

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
