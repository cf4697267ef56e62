internal import VaultCrypto

/// The right to settle one delivery: to acknowledge, release or reject it once, and to extend its
/// lease.
///
/// It names the message and its consumer and carries 16 random bytes drawn for this delivery alone.
/// These bytes cannot be guessed, and a late worker cannot settle a message that has been leased
/// again. Anyone who has the token can settle the delivery; the token contains nothing of the
/// payload.
public struct LeaseToken: Sendable, Hashable, LosslessStringConvertible {
  static let secretByteCount = 16

  let consumerID: Int64
  let timetoken: Timetoken
  let secret: [UInt8]

  init(consumerID: Int64, timetoken: Timetoken, secret: [UInt8]) {
    self.consumerID = consumerID
    self.timetoken = timetoken
    self.secret = secret
  }

  /// Reads a token back from its printed form.
  public init?(_ description: String) {
    let parts = description.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 3, let timetoken = Timetoken(String(parts[0])),
      let consumerID = Int64(parts[1]), consumerID > 0, String(consumerID) == parts[1],
      parts[2].utf8.count == 2 * Self.secretByteCount
    else { return nil }
    let digits = Array(parts[2].utf8)
    var secret: [UInt8] = []
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let high = Self.value(ofDigit: digits[index]),
        let low = Self.value(ofDigit: digits[index + 1])
      else { return nil }
      secret.append(high << 4 | low)
    }
    self.init(consumerID: consumerID, timetoken: timetoken, secret: secret)
  }

  /// The printed form: the timetoken, the consumer's number and 32 lowercase hexadecimal digits,
  /// joined by hyphens.
  public var description: String {
    var text = "\(timetoken)-\(consumerID)-"
    for byte in secret {
      text.append(Self.digits[Int(byte >> 4)])
      text.append(Self.digits[Int(byte & 0x0F)])
    }
    return text
  }

  func opens(_ storedSecret: [UInt8]) -> Bool {
    unsafe isEqualInConstantTime(secret.span.bytes, storedSecret.span.bytes)
  }

  private static let digits = Array("0123456789abcdef")

  private static func value(ofDigit digit: UInt8) -> UInt8? {
    switch digit {
    case 0x30...0x39: digit - 0x30
    case 0x61...0x66: digit - 0x61 + 10
    default: nil
    }
  }
}
