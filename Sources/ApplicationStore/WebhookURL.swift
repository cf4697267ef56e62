/// Where a webhook sends its events: `https://host:port/path?query`, or `http`.
///
/// The URL is stored and sent byte for byte. Which addresses a host can have is the server's
/// decision, because a name can have others at each delivery.
package struct WebhookURL: Sendable, Hashable {
  /// The longest URL, in bytes.
  package static let maximumByteCount = 1024
  private static let maximumHostByteCount = 253

  /// The URL as it was given.
  package let text: String
  /// Whether the connection uses TLS.
  package let usesTLS: Bool
  /// A name, an IPv4 address, or an IPv6 address without its brackets.
  package let host: String
  /// The port; 443 or 80 if the URL has none.
  package let port: Int
  /// What the request line has: path and query.
  package let target: String
  /// What the header `Host` has: host and port as in the URL.
  package let authority: String

  /// Reads a URL.
  ///
  /// - Throws: `invalidArgument` for another scheme, a user, a fragment, a host or port that is not
  ///   valid, a character that is not printable ASCII, and a URL that is too long. The error does not
  ///   have the URL, whose query can be secret.
  package init(_ text: String) throws(ApplicationStoreError) {
    guard (1...Self.maximumByteCount).contains(text.utf8.count) else {
      throw Self.fault("has more than \(Self.maximumByteCount) bytes")
    }
    guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\\") }) else {
      throw Self.fault("has a character that must be percent-encoded")
    }
    guard !text.contains("#") else { throw Self.fault("has a fragment") }
    let rest: Substring
    if text.lowercased().hasPrefix("https://") {
      (usesTLS, rest) = (true, text.dropFirst(8))
    } else if text.lowercased().hasPrefix("http://") {
      (usesTLS, rest) = (false, text.dropFirst(7))
    } else {
      throw Self.fault("does not begin with https:// or http://")
    }
    let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    let (authority, target) = (rest[..<end], rest[end...])
    guard !authority.contains("@") else { throw Self.fault("has a user or a password") }
    guard let (host, port) = Self.split(authority), Self.isValid(host) else {
      throw Self.fault("has no valid host")
    }
    let number = port.map { Int($0) ?? 0 } ?? (usesTLS ? 443 : 80)
    guard (1...65_535).contains(number) else { throw Self.fault("has no valid port") }
    self.text = text
    self.authority = String(authority)
    self.host = String(host)
    self.port = number
    self.target = target.hasPrefix("/") ? String(target) : "/\(target)"
  }

  /// The host without brackets, and the digits of the port; nil for a malformed authority.
  private static func split(_ authority: Substring) -> (host: Substring, port: Substring?)? {
    let hostEnd: Substring.Index
    let host: Substring
    if authority.first == "[" {
      guard let bracket = authority.firstIndex(of: "]") else { return nil }
      host = authority[..<bracket].dropFirst()
      guard host.contains(":") else { return nil }
      hostEnd = authority.index(after: bracket)
    } else {
      hostEnd = authority.firstIndex(of: ":") ?? authority.endIndex
      host = authority[..<hostEnd]
    }
    let rest = authority[hostEnd...]
    if rest.isEmpty { return (host, nil) }
    let digits = rest.dropFirst()
    guard rest.first == ":", (1...5).contains(digits.utf8.count),
      digits.utf8.allSatisfy({ (0x30...0x39).contains($0) })
    else { return nil }
    return (host, digits)
  }

  private static func isValid(_ host: Substring) -> Bool {
    guard (1...maximumHostByteCount).contains(host.utf8.count), host.last != "." else {
      return false
    }
    let isAddress = host.contains(":")
    return host.allSatisfy { character in
      if isAddress { return character.isHexDigit || character == ":" || character == "." }
      return character.isLetter || character.isNumber || "-_.".contains(character)
    }
  }

  private static func fault(_ fault: String) -> ApplicationStoreError {
    ApplicationStoreError(
      .invalidArgument, "the URL of the webhook \(fault)",
      hint: "use a URL such as https://example.com/pusher")
  }
}
