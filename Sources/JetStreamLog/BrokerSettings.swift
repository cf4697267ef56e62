/// Where the brokers are, and how they are recognized.
package struct BrokerSettings: Sendable, Equatable {
  /// `nats://HOST:PORT` or `tls://HOST:PORT`, at least one.
  package var addresses: [String]
  /// The certificates of the authorities that brokers are checked with, in PEM; nil for those of the system alone.
  ///
  /// libnats takes those of the system beside them.
  package var authority: String?

  package init(addresses: [String], authority: String? = nil) {
    self.addresses = addresses
    self.authority = authority
  }

  /// Whether only brokers with TLS are spoken to: a plain one is refused, never used instead.
  package var demandsTLS: Bool {
    authority != nil || addresses.contains { $0.hasPrefix("tls://") }
  }

  /// Throws unless each address has a scheme, a host and a port, and nothing that could hide another one.
  package func check() throws(LogError) {
    guard !addresses.isEmpty else { throw LogError(.invalidSettings, "no broker is named") }
    for address in addresses {
      guard address.utf8.count <= 300, Self.endpoint(of: address) != nil else {
        throw LogError(
          .invalidSettings,
          "a broker's address is not of the form nats://HOST:PORT or tls://HOST:PORT")
      }
    }
  }

  /// The host and the port of an address; nil for another form.
  static func endpoint(of address: String) -> (host: String, port: UInt16)? {
    guard let scheme = ["nats://", "tls://"].first(where: address.hasPrefix) else { return nil }
    let rest = address.dropFirst(scheme.count)
    guard let colon = rest.lastIndex(of: ":") else { return nil }
    let digits = rest[rest.index(after: colon)...]
    var host = rest[..<colon]
    let isIPv6 = host.hasPrefix("[") && host.hasSuffix("]")
    if isIPv6 { host = host.dropFirst().dropLast() }
    let isHost =
      !host.isEmpty
      && host.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."):
          true
        case UInt8(ascii: ":"): isIPv6
        case UInt8(ascii: "-"), UInt8(ascii: "_"): !isIPv6
        default: false
        }
      }
    guard isHost, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = UInt16(digits),
      port > 0
    else { return nil }
    return (String(host), port)
  }
}
