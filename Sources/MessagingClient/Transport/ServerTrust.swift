internal import NIOSSL

/// Whose certificates a client trusts.
public struct ServerTrust: Sendable {
  enum Authority: Sendable {
    case system
    case file(String)
  }

  let authority: Authority

  /// The authorities of the system.
  public static let system = ServerTrust(authority: .system)

  /// The authorities of a PEM file, and no others.
  public static func authorities(inFile path: String) -> ServerTrust {
    ServerTrust(authority: .file(path))
  }

  /// Whether a certificate that NIOSSL takes names the host.
  ///
  /// NIOSSL also takes one that names the address of the connection. Who answers for a name in the place of its owner
  /// has a certificate of an address of his own.
  static func isNamed(_ host: String, in certificate: NIOSSLCertificate) -> Bool {
    let names = certificate._subjectAlternativeNames()
    // It then has a common name, which NIOSSL has compared.
    if names.isEmpty { return true }
    let host = HostName.lowercased(host)
    let parent = host.drop { $0 != "." }
    return names.contains { name in
      guard name.nameType == .dnsName else { return false }
      let text = HostName.lowercased(String(decoding: name.contents, as: UTF8.self))
      return text == host || (!parent.isEmpty && text == "*\(parent)")
    }
  }

  func context(_ protocols: [String]) throws(MessagingClientError) -> NIOSSLContext {
    do {
      var configuration = TLSConfiguration.makeClientConfiguration()
      configuration.minimumTLSVersion = .tlsv12
      configuration.applicationProtocols = protocols
      if case .file(let path) = authority { configuration.trustRoots = .file(path) }
      return try NIOSSLContext(configuration: configuration)
    } catch {
      throw MessagingClientError(
        .invalidArgument, "the trusted authorities cannot be read",
        hint: "give a PEM file with certificates")
    }
  }
}
