internal import VaultCrypto

/// Gives a fuzzer access to everything that is read from other nodes, from brokers and from files.
@_spi(Testing)
public enum ReplicationProbe {
  /// The forms that have one encoding for each value.
  public enum Form: CaseIterable, Sendable {
    case part, record, ring, nodeKeys, request, reply, shardValues, shardChange, recordPlace
  }

  /// Reads bytes and writes them again; nil if they are refused.
  public static func encodedAgain(_ bytes: [UInt8], as form: Form) -> [UInt8]? {
    switch form {
    case .part: try? RecordPart(decoding: bytes).bytes
    case .record: try? Record(decoding: bytes).encoded
    case .ring: try? contents(of: KeyRing(decoding: SecretBytes(copying: bytes)).encodedBytes())
    case .nodeKeys:
      try? contents(of: NodeKeys(decoding: SecretBytes(copying: bytes)).encodedBytes())
    case .request: try? Request(decoding: bytes).encoded()
    case .reply: try? Reply(decoding: bytes).encoded()
    case .shardValues: try? ShardState.Values(decoding: bytes).bytes
    case .shardChange: try? ShardState.Change(decoding: bytes).bytes
    case .recordPlace: try? RecordPlace(decoding: bytes).bytes
    }
  }

  private static func contents(of secret: borrowing SecretBytes) -> [UInt8] {
    secret.withBytes { bytes in [UInt8](copying: bytes) }
  }

  /// Reads a join request and writes it again; nil if it is refused.
  public static func joinRequestAgain(_ bytes: [UInt8]) -> [UInt8]? {
    try? JoinRequest(parsing: bytes).bytes
  }

  /// Reads the public key of a NATS user and writes it again; nil if it is refused.
  public static func userKeyAgain(_ text: String) -> String? { NATSPublicKey(text)?.text }

  /// Reads a fingerprint and writes it again; nil if it is refused.
  public static func fingerprintAgain(_ text: String) -> String? { Fingerprint(text)?.description }

  /// A node that has asked to join, and that owns leases.
  public final class Node {
    private let keys = NodeKeys(from: .system)
    private let member = MemberID(1)
    private let other = MemberID(2)
    private let seal: RequestSeal
    /// The join request of the node.
    public let joinRequest: [UInt8]
    /// An invitation to the node.
    public let invitation: [UInt8]
    /// A request to the node.
    public let request: [UInt8]

    /// Makes a node with random keys.
    public init() throws {
      let ring = KeyRing(newShard: .system)
      let asked = try JoinRequest(member: member, keys: keys)
      joinRequest = asked.bytes
      invitation = try Invitation(
        to: asked, ring, settings: SecretBytes(copying: [1, 2, 3]), random: .system
      ).bytes
      seal = RequestSeal(ring, member: member, random: .system)
      request = try RequestSeal(ring, member: other, random: .system).seal(
        Request(epoch: EpochID(1), beat: 2, .extend([LeaseID(3)], leaseMilliseconds: 4)),
        id: RequestID(5), to: member, under: 1)
    }

    /// Whether an invitation opens that has the fingerprint that was entered.
    public func opens(invitation file: [UInt8]) -> Bool {
      guard let read = try? Invitation(parsing: file) else { return false }
      return (try? read.open(with: keys, member: member, confirmed: read.fingerprint)) != nil
    }

    /// Whether a request opens.
    public func opens(request bytes: [UInt8]) -> Bool { (try? seal.openRequest(bytes)) != nil }
  }
}

extension [UInt8] {
  fileprivate init(copying bytes: RawSpan) {
    self = (0..<bytes.byteCount).map { bytes.number(at: $0) }
  }
}
