/// Where a server listens: `HOST:PORT`, `[IPv6]:PORT` or `unix:PATH`.
package struct ListenAddress: Sendable, Hashable, CustomStringConvertible {
  enum Kind: Sendable, Hashable {
    case tcp(host: String, port: Int)
    case unix(path: String)
    /// A socket that the service manager has opened.
    case inherited(descriptor: Int32)
  }

  let kind: Kind
  /// The text that was parsed.
  package let description: String

  /// Parses an address; nil if it has none of the forms.
  ///
  /// Port 0 lets the system choose.
  package init?(_ text: String) {
    if text.hasPrefix("unix:") {
      let path = String(text.dropFirst(5))
      // The size of sun_path: unix(7).
      guard path.hasPrefix("/"), path.utf8.count < 108 else { return nil }
      kind = .unix(path: path)
    } else {
      guard let colon = text.lastIndex(of: ":"),
        let port = UInt16(text[text.index(after: colon)...])
      else { return nil }
      var host = text[..<colon]
      if host.hasPrefix("["), host.hasSuffix("]") {
        host = host.dropFirst().dropLast()
      } else if host.contains(":") {
        return nil
      }
      guard !host.isEmpty else { return nil }
      kind = .tcp(host: String(host), port: Int(port))
    }
    description = text
  }

  /// Whether this is a Unix socket, which needs no TLS.
  package var isUnix: Bool { if case .unix = kind { true } else { false } }

  /// A listening socket of the service manager: sd_listen_fds(3).
  package init(inherited descriptor: Int32) {
    kind = .inherited(descriptor: descriptor)
    description = "descriptor \(descriptor)"
  }
}
