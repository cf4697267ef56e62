internal import Glibc

/// Where random bytes come from: the kernel, or a fixed sequence handed in by a test.
@safe public struct RandomSource: Sendable {
  private let body: @Sendable (UnsafeMutableRawBufferPointer) -> Void

  /// Makes a source that fills the whole buffer it is given.
  public init(_ body: @escaping @Sendable (UnsafeMutableRawBufferPointer) -> Void) {
    unsafe self.body = body
  }

  /// The kernel's generator, getrandom(2): no state of our own that a fork or a cloned virtual
  /// machine could repeat.
  public static let system = unsafe RandomSource { target in
    var offset = 0
    while offset < target.count {
      let count = min(256, target.count - offset)  // getentropy(3) gives at most 256 at a time
      let piece = unsafe UnsafeMutableRawBufferPointer(rebasing: target[offset..<offset + count])
      guard unsafe getentropy(piece.baseAddress, count) == 0 else {
        preconditionFailure("the kernel gave no random bytes: errno \(errno)")
      }
      offset += count
    }
  }

  /// Fills the buffer.
  public func fill(_ target: UnsafeMutableRawBufferPointer) {
    unsafe body(target)
  }

  /// Draws bytes that are not secret: a nonce, a salt, an identity.
  public func bytes(count: Int) -> [UInt8] {
    unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
      unsafe fill(
        UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<count]))
      initializedCount = count
    }
  }
}
