/// Where the brokers are, and how they are recognized.
package struct BrokerSettings: Sendable, Equatable {
  /// `nats://HOST:PORT` or `tls://HOST:PORT`, at least one.
  package var addresses: [String]
  /// The certificates of the authorities that brokers are checked with, in PEM; nil for those of the system.
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
    for address in addresses {
      let rest = ["nats://", "tls://"].first(where: address.hasPrefix).map {
        address.dropFirst($0.count)
      }
      let isHost = rest?.utf8.allSatisfy {
        ($0 >= 0x61 && $0 <= 0x7A) || ($0 >= 0x41 && $0 <= 0x5A) || ($0 >= 0x30 && $0 <= 0x3A)
          || ".-_[]".utf8.contains($0)
      }
      let port = rest?.split(separator: ":").last.flatMap { UInt16($0) }
      guard isHost == true, port != nil, address.utf8.count <= 300 else {
        throw LogError(
          .invalidSettings,
          "a broker's address is not of the form nats://HOST:PORT or tls://HOST:PORT")
      }
    }
    guard !addresses.isEmpty else { throw LogError(.invalidSettings, "no broker is named") }
  }
}
