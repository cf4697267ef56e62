package import Replication
package import VaultCrypto

/// The names of a shard at its brokers, which say nothing: `docs/reference/replication-format.md`, "Names".
package struct ShardNames: Sendable, Equatable {
  /// The stream.
  package let stream: String
  /// The subject of the records.
  package let records: String
  private let prefix: String

  /// - Throws: `CryptoError` if OpenSSL failed.
  package init(_ ring: borrowing KeyRing) throws(CryptoError) {
    let secret = ring.namingSecret()
    let code = try unsafe HMAC.sha256(
      key: secret, message: Array("datavault/replication/names".utf8).span.bytes)
    let name = code.prefix(16).map { byte in
      let digits = String(byte, radix: 16)
      return digits.count == 1 ? "0\(digits)" : digits
    }.joined()
    stream = "DV_\(name)"
    prefix = "dv.\(name)"
    records = "\(prefix).r"
  }

  /// The subject on which a member answers requests.
  package func requests(to member: MemberID) -> String {
    "\(prefix).m.\(String(member.value, radix: 16))"
  }

  /// What the subjects of answers begin with.
  var inboxes: String { "\(prefix).i" }

  /// A subject for answers, which other clients cannot guess.
  func newInbox() -> String {
    "\(inboxes).\(String(UInt128.random(in: 0 ... .max), radix: 16))"
  }

  /// Whether a subject can go to libnats, which checks none: a line feed in one would begin another command.
  static func isSafe(_ subject: String) -> Bool {
    (1...512).contains(subject.utf8.count)
      && subject.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"),
          UInt8(ascii: "-"), UInt8(ascii: "$"):
          true
        default: false
        }
      }
  }
}
