internal import Glibc

/// A source of random bytes: the kernel, or a fixed sequence from a test.
@safe public struct RandomSource: Sendable {
  private let body: @Sendable (UnsafeMutableRawBufferPointer) -> Void

  /// Makes a source; `body` must fill the whole buffer that it is given.
  public init(_ body: @escaping @Sendable (UnsafeMutableRawBufferPointer) -> Void) {
    unsafe self.body = body
  }

  /// The kernel's generator, getentropy(3).
  ///
  /// It keeps no state in this process that a fork or a cloned virtual machine could repeat.
  public static let system = unsafe RandomSource { target in
    var offset = 0
    while offset < target.count {
      let count = min(256, target.count - offset)  // getentropy(3) returns at most 256 bytes
      let piece = unsafe UnsafeMutableRawBufferPointer(rebasing: target[offset..<offset + count])
      guard unsafe getentropy(piece.baseAddress, count) == 0 else {
        preconditionFailure("the kernel returned no random bytes: errno \(errno)")
      }
      offset += count
    }
  }

  /// Fills the buffer.
  public func fill(_ target: UnsafeMutableRawBufferPointer) {
    unsafe body(target)
  }

  /// Returns random bytes that are not secret: a nonce, a salt, an identity.
  public func bytes(count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    unsafe bytes.withUnsafeMutableBytes { unsafe fill($0) }
    return bytes
  }
}

extension RandomSource {
  /// The kernel's generator, as ``system``, but faster for each call where the kernel supports
  /// that.
  ///
  /// Only one thread at a time can use it.
  public static func unshared() -> RandomSource {
    guard let random = VDSORandom() else { return .system }
    return unsafe RandomSource { target in
      if unsafe !random.fill(target) { unsafe RandomSource.system.fill(target) }
    }
  }
}
