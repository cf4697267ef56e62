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
