/// Where a STOMP server is, and what carries its frames.
struct STOMPAddress: Sendable, Equatable, CustomStringConvertible {
  enum Carrier: Sendable {
    /// A TCP stream, with TLS for `stomps`.
    case stream
    case webSocket
  }

  let carrier: Carrier
  /// The host and the port; of `stomp` and `stomps` as those of `http` and `https`.
  let origin: Origin
  let description: String

  /// - Parameter text: `stomp://host:port`, `stomps://host:port`, `http://host` or `https://host`.
  /// - Throws: `invalidArgument`.
  init(_ text: String) throws(MessagingClientError) {
    do throws(LocationError) {
      guard let mark = text.firstRange(of: "://") else { throw .unknownScheme }
      let rest = text[mark.upperBound...]
      switch HostName.lowercased(text[..<mark.lowerBound]) {
      case "stomp": (carrier, origin) = (.stream, try Self.stream("http://\(rest)"))
      case "stomps": (carrier, origin) = (.stream, try Self.stream("https://\(rest)"))
      default: (carrier, origin) = (.webSocket, try Origin(text))
      }
    } catch {
      throw MessagingClientError(
        .invalidArgument, "the address of the server is not valid: \(error)",
        hint: "use stomp://HOST:PORT, stomps://HOST:PORT, or https://HOST for a WebSocket")
    }
    let authority = origin.description.split(separator: "/").last ?? ""
    description =
      switch carrier {
      case .stream: "\(origin.isProtected ? "stomps" : "stomp")://\(authority)"
      case .webSocket: origin.description
      }
  }

  /// The specification gives no port, so that a stream must name it.
  private static func stream(_ text: String) throws(LocationError) -> Origin {
    let origin = try Origin(text)
    guard try LocationParts(text, defaultScheme: nil).portNumber != nil else {
      throw .malformed("a stomp address names its port")
    }
    return origin
  }
}
