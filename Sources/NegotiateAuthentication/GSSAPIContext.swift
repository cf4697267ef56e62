internal import FileLayer
public import MessagingClient

/// The client's side of one Kerberos authentication by SPNEGO (RFC 4559, RFC 4178), with MIT Kerberos' GSSAPI.
///
/// The server's principal is `HTTP/host`, which GSSAPI calls `HTTP@host`. The credentials are the tickets of the user's
/// ticket cache, which `kinit` or the login has stored. SPNEGO offers Kerberos alone. Both sides authenticate each
/// other. No ticket is delegated to the server.
///
/// The calls to GSSAPI block while they read files, and ask name servers and the KDC, so they run on a thread of their
/// own. The time limits are those of `krb5.conf`. A cancelled task waits until the call has ended.
///
/// A context serves one authentication of one connection. Its handles are released with it.
public actor GSSAPIContext: NegotiateContext {
  /// The longest token in bytes, of the client and of the server.
  public static let maximumTokenByteCount = 65_536
  /// The longest host in bytes.
  public static let maximumHostByteCount = 255
  /// The longest name of a ticket cache in bytes.
  public static let maximumCacheNameByteCount = 1024

  private nonisolated let executor = BlockingExecutor(label: "datavault.gssapi")
  private let peer: String
  private var context: SecurityContext

  /// The thread for the calls, which block.
  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  /// Makes a context; it does no input or output yet.
  ///
  /// - Parameters:
  ///   - host: the host of the server as in its URL: 1 to 255 ASCII letters, digits, `-`, `_`, `.` and `:`, also in
  ///     brackets.
  ///   - credentialCache: a ticket cache such as `FILE:/run/app/tickets` or `KEYRING:persistent:1000`, 1 to 1024 bytes
  ///     without control characters; by default the one that `KRB5CCNAME` or `krb5.conf` names.
  /// - Throws: `invalidArgument`.
  public init(host: String, credentialCache: String? = nil) throws(GSSAPIError) {
    let name =
      host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    guard (1...Self.maximumHostByteCount).contains(name.utf8.count),
      name.utf8.allSatisfy(Self.isHostByte)
    else { throw .invalidArgument("a host has 1 to 255 ASCII letters, digits, -, _, . and :") }
    if let credentialCache {
      guard (1...Self.maximumCacheNameByteCount).contains(credentialCache.utf8.count),
        credentialCache.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
      else {
        throw .invalidArgument(
          "the name of a ticket cache has 1 to 1024 bytes without control characters")
      }
    }
    peer = "HTTP@\(name)"
    context = SecurityContext(peer: peer, credentialCache: credentialCache)
  }

  /// Makes the next token of the client.
  ///
  /// - Parameter serverToken: nil in the first round, then what the server sent.
  /// - Returns: the token, which the caller wipes after its use.
  /// - Throws: `noCredentials`, `credentialsExpired`, `invalidServerToken`, `serverNotAuthenticated`, `contextUsed`,
  ///   `failed`.
  public func next(serverToken: [UInt8]?) throws(GSSAPIError) -> [UInt8] {
    let token: [UInt8]
    switch (context.state, serverToken) {
    case (.new, nil): token = try context.begin()
    case (.waiting, let serverToken?): token = try take(serverToken)
    default: throw .contextUsed(peer)
    }
    // The server refuses although nothing is left to say.
    guard !token.isEmpty else { throw .contextUsed(peer) }
    return token
  }

  /// Takes the token in the server's success, which proves that the server has the key of its principal.
  ///
  /// - Parameter serverToken: nil if the success has none.
  /// - Throws: `serverNotAuthenticated` if a proof is missing, `invalidServerToken` or `failed` if it is wrong,
  ///   `contextUsed`.
  public func finish(serverToken: [UInt8]?) throws(GSSAPIError) {
    switch (context.state, serverToken) {
    case (.waiting, let serverToken?): _ = try take(serverToken)
    case (.waiting, nil), (.established, nil): break
    default: throw .contextUsed(peer)
    }
    guard case .established = context.state else { throw .serverNotAuthenticated(peer) }
  }

  private func take(_ serverToken: [UInt8]) throws(GSSAPIError) -> [UInt8] {
    guard (1...Self.maximumTokenByteCount).contains(serverToken.count) else {
      throw .invalidServerToken(peer)
    }
    return try context.continue(serverToken)
  }

  private static func isHostByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: "-_.:".utf8.contains(byte)
    }
  }
}

extension NegotiateChallengeHandler {
  /// Answers with the tickets of the user's ticket cache; see ``GSSAPIContext``.
  ///
  /// Each authentication gets a context of its own, for the host of the connection.
  ///
  /// - Parameters:
  ///   - credentialCache: the name of a ticket cache; by default the user's.
  ///   - schemes: `Negotiate` and `Application Negotiate` by default.
  public static func kerberos(
    credentialCache: String? = nil,
    schemes: Set<Challenge.Scheme> = [.negotiate, .applicationNegotiate]
  ) -> NegotiateChallengeHandler {
    NegotiateChallengeHandler(schemes: schemes) { origin in
      try GSSAPIContext(host: origin.host, credentialCache: credentialCache)
    }
  }
}
