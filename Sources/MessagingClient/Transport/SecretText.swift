internal import NIOCore
public import VaultCrypto

/// A secret that several requests use: it is wiped when the last of them lets it go.
public final class SharedSecret: Sendable {
  private let secret: SecretBytes

  /// Takes a secret over.
  public init(_ secret: consuming SecretBytes) { self.secret = secret }

  /// Copies a secret.
  public init(copying secret: borrowing SecretBytes) { self.secret = secret.copy() }

  /// Secrets with commas between them.
  init(list: [SharedSecret]) {
    secret = list.enumerated().reduce(SecretText("")) {
      $0 + SecretText($1.offset == 0 ? "" : ",") + SecretText($1.element)
    }.secret()
  }

  var byteCount: Int { secret.byteCount }

  /// Compares in constant time.
  func isEqual(to other: SharedSecret) -> Bool {
    withBytes { mine in other.withBytes { isEqualInConstantTime(mine, $0) } }
  }

  func withBytes<R, E>(_ body: (RawSpan) throws(E) -> R) throws(E) -> R {
    try secret.withBytes(body)
  }

  /// Lends the secret for the duration of `body`.
  public func withSecret<R: ~Copyable, E>(
    _ body: (borrowing SecretBytes) throws(E) -> R
  ) throws(E) -> R {
    try body(secret)
  }
}

/// Text of a request that can contain secrets: they are written into its bytes last, and wiped there when it is sent.
struct SecretText: Sendable, ExpressibleByStringLiteral, ExpressibleByStringInterpolation {
  private enum Part: Sendable {
    case text(String)
    case secret(SharedSecret)
  }

  private var parts: [Part]

  init(_ text: String) { parts = [.text(text)] }
  init(_ secret: SharedSecret) { parts = [.secret(secret)] }
  init(stringLiteral text: String) { self.init(text) }

  static func + (left: SecretText, right: SecretText) -> SecretText {
    var sum = left
    sum.parts += right.parts
    return sum
  }

  static func += (left: inout SecretText, right: SecretText) { left.parts += right.parts }

  var byteCount: Int {
    parts.reduce(0) { sum, part in
      switch part {
      case .text(let text): sum + text.utf8.count
      case .secret(let secret): sum + secret.byteCount
      }
    }
  }

  /// Whether a part of it is a secret.
  var hasSecret: Bool {
    parts.contains { part in
      if case .secret(let secret) = part { secret.byteCount > 0 } else { false }
    }
  }

  /// Whether no byte ends a line or a header: nothing of a user or a file can add a header.
  var isOneLine: Bool {
    parts.allSatisfy { part in
      switch part {
      case .text(let text): text.utf8.allSatisfy(Self.isPrintable)
      case .secret(let secret):
        secret.withBytes { bytes in
          (0..<bytes.byteCount).allSatisfy { Self.isPrintable(bytes[$0]) }
        }
      }
    }
  }

  private static func isPrintable(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7F }

  /// The whole text as a secret.
  func secret() -> SecretBytes {
    var whole = SecretBytes(zeroCount: byteCount)
    unsafe whole.withUnsafeMutableBytes { target in
      var position = 0
      for part in parts {
        switch part {
        case .text(let text):
          for byte in text.utf8 {
            unsafe target[position] = byte
            position += 1
          }
        case .secret(let secret):
          secret.withBytes { bytes in
            for index in 0..<bytes.byteCount {
              unsafe target[position] = bytes[index]
              position += 1
            }
          }
        }
      }
    }
    return whole
  }

  func write(to buffer: inout ByteBuffer) {
    for part in parts {
      switch part {
      case .text(let text): buffer.writeString(text)
      case .secret(let secret):
        secret.withBytes { bytes in
          for index in 0..<bytes.byteCount { buffer.writeInteger(bytes[index]) }
        }
      }
    }
  }
}

extension RawSpan {
  subscript(index: Int) -> UInt8 { unsafe unsafeLoad(fromByteOffset: index, as: UInt8.self) }
}
