internal import NIOCore
internal import NIOHTTP1

/// Where a proxy connects from that says in `X-Forwarded-For` for whom.
package enum TrustedProxy: Sendable, Hashable {
  /// A program that can open a Unix socket on which the server listens.
  case unixSocket
  /// An IP address, as its 4 or 16 bytes.
  case address([UInt8])

  /// Nil for a text that is neither `unix` nor an address.
  package init?(_ text: String) {
    if text == "unix" {
      self = .unixSocket
    } else if let bytes = IPRange.bytes(text) {
      self = .address(bytes)
    } else {
      return nil
    }
  }

  fileprivate init?(_ peer: SocketAddress?) {
    switch peer {
    case nil, .unixDomainSocket: self = .unixSocket
    case .v4(_), .v6(_):
      guard let bytes = peer?.ipAddress.flatMap(IPRange.bytes) else { return nil }
      self = .address(bytes)
    }
  }
}

extension LoginSource {
  /// The client of a request: the peer, or for whom a trusted proxy has sent it.
  ///
  /// Only the last address counts, because that is the one that the proxy has added: a client can send the others.
  init(of headers: HTTPHeaders, from peer: SocketAddress?, trusting proxies: Set<TrustedProxy>) {
    self.init(peer)
    guard !proxies.isEmpty, TrustedProxy(peer).map(proxies.contains) == true,
      let address = headers[canonicalForm: "x-forwarded-for"].last,
      let client = try? SocketAddress(ipAddress: String(address), port: 0)
    else { return }
    self.init(client)
  }
}
