internal import NIOHTTP1

/// The origin of a web page as browsers send it (RFC 6454): `https://example.com`, in lower case, without the port that
/// the scheme implies.
package struct WebOrigin: Sendable, Hashable, CustomStringConvertible {
  /// The scheme, the host and the port.
  package let description: String

  /// Nil for a text that is not a scheme, a host in ASCII, and possibly a port.
  package init?(_ text: String) {
    let text = text.lowercased()
    guard
      let (scheme, port) = [("http://", ":80"), ("https://", ":443")].first(where: {
        text.hasPrefix($0.0)
      })
    else { return nil }
    let authority = text.dropFirst(scheme.count)
    guard !authority.isEmpty, authority.utf8.allSatisfy(\.isOfAuthority) else { return nil }
    description = authority.hasSuffix(port) ? String(text.dropLast(port.count)) : text
  }
}

extension UInt8 {
  /// Whether a host or a port has this character.
  fileprivate var isOfAuthority: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
    default: "-._:[]".utf8.contains(self)
    }
  }
}

extension HTTPRequest {
  /// Whether a web page of another origin sends the request, and that origin is not allowed.
  ///
  /// Browsers send `Origin` with each handshake of a WebSocket, and no page can change it. Other clients need not.
  func isFromOtherOrigin(than allowed: Set<WebOrigin> = []) -> Bool {
    let origins = headers["origin"].map { $0.lowercased() }
    guard let origin = origins.first else { return false }
    let host = (headers.first(name: "host") ?? "").lowercased()
    let isOwn = ["http://", "https://", "ws://", "wss://"].contains { origin == $0 + host }
    return origins.count > 1 || !isOwn && !allowed.contains { $0.description == origin }
  }
}
