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
  package let secret: [UInt8]

  init(consumerID: Int64, timetoken: Timetoken, secret: [UInt8]) {
    self.consumerID = consumerID
    self.timetoken = timetoken
    self.secret = secret
  }

  /// Reads a token back from its printed form.
  public init?(_ description: String) {
    let parts = description.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 3, let timetoken = Timetoken(String(parts[0])),
      let consumerID = Int64(parts[1]), consumerID > 0,
      parts[2].utf8.count == 2 * Self.secretByteCount
    else { return nil }
    let digits = Array(parts[2].utf8)
    let secret = stride(from: 0, to: digits.count, by: 2).compactMap { index in
      UInt8(String(decoding: digits[index...index + 1], as: UTF8.self), radix: 16)
    }
    self.init(consumerID: consumerID, timetoken: timetoken, secret: secret)
    // Upper case and signs, which the numbers above accept, are not the printed form.
    guard description.utf8.elementsEqual(self.description.utf8) else { return nil }
  }

  /// The printed form: the timetoken, the consumer's number and 32 lowercase hexadecimal digits,
  /// joined by hyphens.
  public var description: String { "\(timetoken)-\(consumerID)-\(secret.hexadecimal)" }

  func opens(_ storedSecret: [UInt8]) -> Bool {
    unsafe isEqualInConstantTime(secret.span.bytes, storedSecret.span.bytes)
  }
}
