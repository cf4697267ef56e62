/// The origin of a server: scheme, host and port (RFC 6454, section 4).
///
/// Credentials go to the origin that asked for them, and to no other. A WebSocket has the origin of its handshake: `ws`
/// is `http`, and `wss` is `https`.
public struct Origin: Sendable, Hashable, CustomStringConvertible {
  /// The scheme of an origin.
  public enum Scheme: String, Sendable {
    /// Plain HTTP, and `ws`.
    case http
    /// HTTP over TLS, and `wss`.
    case https

    /// The port of a URL that has none.
    public var defaultPort: Int { self == .https ? 443 : 80 }

    /// The scheme of a URL's first part.
    init?(text: some StringProtocol) {
      switch text {
      case "http", "ws": self = .http
      case "https", "wss": self = .https
      default: return nil
      }
    }
  }

  /// The scheme.
  public let scheme: Scheme

  /// The host in lower case: a name, an IPv4 address, or an IPv6 address in brackets in its shortest form.
  public let host: String

  /// The port: 1 to 65535.
  public let port: Int

  /// Makes an origin.
  ///
  /// - Parameters:
  ///   - host: a name, an IPv4 address of four numbers, or an IPv6 address in brackets.
  ///   - port: 1 to 65535; by default that of the scheme.
  /// - Throws: `malformed` for a host or a port that is none.
  public init(_ scheme: Scheme, host: String, port: Int? = nil) throws(LocationError) {
    let port = port ?? scheme.defaultPort
    guard (1...65535).contains(port) else { throw .malformed("a port is a number from 1 to 65535") }
    self.scheme = scheme
    self.host = try HostName.canonical(host)
    self.port = port
  }

  /// Reads an origin: `https://host` or `https://host:port`, with any of the schemes of a ``Location``.
  ///
  /// - Throws: ``LocationError``, also for a text with a user, a path, a query or a fragment.
  public init(_ text: String) throws(LocationError) {
    let parts = try LocationParts(text, defaultScheme: nil)
    guard parts.userInfo == nil, parts.rest.isEmpty, let scheme = parts.scheme else {
      throw .malformed("an origin has no user, no path, no query and no fragment")
    }
    try self.init(scheme, host: parts.host, port: parts.portNumber)
  }

  /// Whether TLS protects what is sent there.
  public var isProtected: Bool { scheme == .https }

  /// Whether the host is this machine: `localhost`, `[::1]`, or an address in 127.0.0.0/8.
  public var isLoopback: Bool {
    host == "localhost" || host == "[::1]" || (HostName.isIPv4(host) && host.hasPrefix("127."))
  }

  /// The origin as a URL, without the port that the scheme implies: `https://host:8443`.
  public var description: String {
    let suffix = port == scheme.defaultPort ? "" : ":\(port)"
    return "\(scheme.rawValue)://\(host)\(suffix)"
  }
}
