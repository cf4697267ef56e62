internal import Glibc
internal import NIOCore

/// What a webhook reaches at an address.
///
/// The ranges are those of IANA's special-purpose registries (RFC 6890 and its updates).
enum WebhookAddress: Sendable, Equatable {
  /// A host of the internet.
  case `public`
  /// This machine, or a host of a network that the internet does not reach.
  case `private`
  /// No host that takes webhooks: multicast, link-local addresses, the metadata services of clouds, and addresses that
  /// stand for others.
  case forbidden

  init(_ address: SocketAddress) {
    self = address.ipAddress.flatMap(IPRange.bytes).map(WebhookAddress.init) ?? .forbidden
  }

  private init(_ bytes: [UInt8]) {
    if Self.nat64.contains(bytes) {
      self = WebhookAddress(Array(bytes[12...])) == .public ? .public : .forbidden
    } else if let found = Self.ranges.first(where: { $0.range.contains(bytes) }) {
      self = found.kind
    } else {
      // Of IPv6, only global unicast addresses are hosts of the internet.
      self = bytes.count == 4 || Self.globalUnicast.contains(bytes) ? .public : .forbidden
    }
  }

  private static let globalUnicast = IPRange("2000::/3")
  /// What stands for the IPv4 address behind it: RFC 6052.
  private static let nat64 = IPRange("64:ff9b::/96")

  private static let ranges = kinds.map { (range: IPRange($0.0), kind: $0.1) }

  /// The first range that has an address decides.
  private static let kinds: [(String, WebhookAddress)] = [
    // Link-local, with the metadata services of most clouds.
    ("169.254.0.0/16", .forbidden), ("fe80::/10", .forbidden),
    // Metadata services elsewhere: AWS, Google, Alibaba, Oracle and Azure.
    ("fd00:ec2::/32", .forbidden), ("fd20:ce::254/128", .forbidden),
    ("100.100.100.200/32", .forbidden), ("192.0.0.192/32", .forbidden),
    ("168.63.129.16/32", .forbidden),
    // This network, multicast, reserved and broadcast.
    ("0.0.0.0/8", .forbidden), ("224.0.0.0/3", .forbidden),
    // Loopback.
    ("127.0.0.0/8", .private), ("::1/128", .private),
    // Private use, and unique-local.
    ("10.0.0.0/8", .private), ("172.16.0.0/12", .private), ("192.168.0.0/16", .private),
    ("fc00::/7", .private),
    // Carrier-grade NAT.
    ("100.64.0.0/10", .private),
    // Protocols, benchmarks and documentation.
    ("192.0.0.0/24", .private), ("192.0.2.0/24", .private), ("192.88.99.0/24", .private),
    ("198.18.0.0/15", .private), ("198.51.100.0/24", .private), ("203.0.113.0/24", .private),
    ("2001:db8::/32", .private), ("3fff::/20", .private),
    // Tunnels and protocols: Teredo and 6to4 stand for IPv4 addresses.
    ("2001::/23", .forbidden), ("2002::/16", .forbidden),
  ]
}

/// The addresses with one beginning.
struct IPRange {
  private let network: [UInt8]
  private let bitCount: Int

  /// - Parameter text: an address, a slash, and the number of its first bits.
  init(_ text: String) {
    let parts = text.split(separator: "/")
    guard parts.count == 2, let network = Self.bytes(String(parts[0])), let count = Int(parts[1])
    else { preconditionFailure("the range \(text) is not valid") }
    (self.network, bitCount) = (network, count)
  }

  func contains(_ address: [UInt8]) -> Bool {
    guard address.count == network.count else { return false }
    return network.indices.allSatisfy { index in
      let count = max(0, min(8, bitCount - 8 * index))
      return (address[index] ^ network[index]) & ~(0xFF >> UInt8(count)) == 0
    }
  }

  /// The 4 or 16 bytes of an address; nil for another text.
  static func bytes(_ text: String) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: 16)
    if unsafe inet_pton(AF_INET, text, &bytes) == 1 { return Array(bytes[..<4]) }
    return unsafe inet_pton(AF_INET6, text, &bytes) == 1 ? bytes : nil
  }
}
