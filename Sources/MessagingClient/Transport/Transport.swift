internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import Synchronization

/// The requests of a client to one server: connections are kept, challenges answered, redirects bounded.
final class Transport: Sendable {
  let origin: Origin
  let log: ClientLog
  private let connector: Connector
  private let challenges: ClientChallenges?
  /// What the server has accepted: it is sent with the first request too (RFC 7617, 2.2).
  private let accepted = Mutex<SharedSecret?>(nil)
  /// Connections that wait for a request, the newest last.
  private let idle = Mutex<[HTTPConnection]>([])

  private static let maximumIdleCount = 8
  private static let maximumRedirectCount = 5
  private static let redirects: Set<Int> = [301, 302, 307, 308]

  /// - Throws: `invalidArgument` for an address that is none, or authorities that cannot be read.
  init(
    _ server: String, _ trust: ServerTrust, _ challenges: ClientChallenges?, connectTime: Duration,
    client: String = "", logger: Logger? = nil
  ) throws(MessagingClientError) {
    do throws(LocationError) {
      origin = try Origin(server)
    } catch {
      throw MessagingClientError(
        .invalidArgument, "the address of the server is not valid: \(error)",
        hint: "give its scheme, host and port, such as https://messages.example.com:8443")
    }
    log = ClientLog(logger ?? .silent, client: client, server: "\(origin)")
    connector = try Connector(origin, trust, connectTime: connectTime)
    self.challenges = challenges
  }

  deinit { for connection in idle.withLock({ $0 }) { connection.close() } }

  /// Sends a request, and answers what the server asks before it serves it.
  ///
  /// - Throws: `outcomeUnknown` if the request was sent and no answer came, `cannotConnect`, `untrustedServer`,
  ///   `unauthenticated`, `refusedRedirect`, `invalidAnswer`, `cancelled`.
  func send(_ request: ClientRequest) async throws(MessagingClientError) -> ClientResponse {
    let (response, connection) = try await exchange(request)
    keep(connection)
    return response
  }

  /// Opens a WebSocket.
  ///
  /// - Throws: as ``send(_:)``, and `refused` with the status if the server does not open one.
  func openWebSocket(
    _ target: RequestTarget, subprotocols: [String] = [], messageByteCount: Int,
    timeout: Duration = .seconds(10)
  ) async throws(MessagingClientError) -> WebSocket {
    let handshake = WebSocketOpeningHandshake(subprotocols)
    var request = ClientRequest(target: target, headers: handshake.headers)
    request.webSocket = WebSocketOpening(handshake: handshake, messageByteCount: messageByteCount)
    request.timeout = timeout
    let (response, connection) = try await exchange(request)
    guard let webSocket = response.webSocket else {
      keep(connection)
      throw MessagingClientError(response, "the server opens no WebSocket")
    }
    return webSocket
  }

  // MARK: - Exchanges

  private func exchange(
    _ original: ClientRequest
  ) async throws(MessagingClientError) -> (ClientResponse, HTTPConnection) {
    let authenticator = challenges.map {
      Authenticator(
        connectionTo: origin, handler: $0.handler, challengeGuard: $0.guard, log: log)
    }
    do throws(MessagingClientError) {
      let result = try await exchange(original, authenticator)
      await authenticator?.closed()
      return result
    } catch {
      await authenticator?.closed()
      throw error
    }
  }

  private func exchange(
    _ original: ClientRequest, _ authenticator: Authenticator?
  ) async throws(MessagingClientError) -> (ClientResponse, HTTPConnection) {
    var request = original
    var redirectCount = 0
    var authorization = accepted.withLock { $0 }
    var isRepeatable = true
    var (response, connection) = try await attempt(request, authorization, on: nil)
    while true {
      switch response.status {
      // Without a challenge, the answer is a refusal like others, whose text says why.
      case 401 where authenticator != nil || response.headers.contains(name: "www-authenticate"):
        accepted.withLock { $0 = nil }
        let refused = authorization
        (authorization, isRepeatable) = try await answer(
          response, at: request.target.path, authenticator, connection)
        // What the server accepted once and has now refused, as after a change of the password.
        if isRepeatable, let refused, authorization?.isEqual(to: refused) == true {
          await authenticator?.refused()
          keep(connection)
          throw MessagingClientError(AuthenticationError.refused(at: origin))
        }
      case let status where Self.redirects.contains(status) && request.method == .GET:
        redirectCount += 1
        request.target = try redirect(response, redirectCount, connection)
      case 403:
        await authenticator?.refused()
        return (response, connection)
      default:
        try await open(response, authenticator, connection)
        if let authorization, isRepeatable, response.status < 500 {
          accepted.withLock { $0 = authorization }
        }
        return (response, connection)
      }
      // On the same connection if it is kept: some schemes authenticate the connection.
      (response, connection) = try await attempt(request, authorization, on: connection)
    }
  }

  /// Notes that the server has accepted what it asked for; some schemes have a proof of the server in the answer.
  private func open(
    _ response: ClientResponse, _ authenticator: Authenticator?, _ connection: HTTPConnection
  ) async throws(MessagingClientError) {
    // A proxy that fails proves nothing.
    if response.status >= 500 { return }
    do throws(AuthenticationError) {
      try await authenticator?.opened(response.headers["www-authenticate"])
    } catch {
      connection.close()
      throw MessagingClientError(error)
    }
  }

  /// The value of `Authorization`, and whether other requests can have it too.
  private func answer(
    _ response: ClientResponse, at path: String, _ authenticator: Authenticator?,
    _ connection: HTTPConnection
  ) async throws(MessagingClientError) -> (SharedSecret, isRepeatable: Bool) {
    guard let authenticator else {
      keep(connection)
      throw MessagingClientError(
        .unauthenticated, "\(origin) asks for credentials, and the client has no challenge handler",
        hint: "set the challenges of its configuration", status: 401)
    }
    guard let location = try? Location("\(origin)\(path)") else {
      keep(connection)
      throw MessagingClientError(
        .unauthenticated,
        "\(origin) asks for credentials for a path that no handler can be chosen by",
        hint: "use shorter names, without control characters", status: 401)
    }
    do throws(AuthenticationError) {
      let answer = try await authenticator.answer(
        response.headers["www-authenticate"], at: location)
      return (SharedSecret(copying: answer.authorization), !answer.needsSameConnection)
    } catch {
      keep(connection)
      throw MessagingClientError(error)
    }
  }

  /// The target of a redirect to the same origin.
  private func redirect(
    _ response: ClientResponse, _ count: Int, _ connection: HTTPConnection
  ) throws(MessagingClientError) -> RequestTarget {
    guard count <= Self.maximumRedirectCount else {
      connection.close()
      throw MessagingClientError(
        .refusedRedirect, "\(origin) redirects without end", status: response.status)
    }
    guard let path = response.headers.first(name: "location").flatMap(pathHere) else {
      connection.close()
      throw MessagingClientError(
        .refusedRedirect, "\(origin) redirects to another origin",
        hint: "give the client the address of the server itself", status: response.status)
    }
    return RequestTarget(path: path)
  }

  /// The path and query of a URL, if it is one of this origin; no byte of it ends the target or the line.
  private func pathHere(_ url: String) -> String? {
    let isPath = url.utf8.starts(with: "/".utf8) && !url.utf8.starts(with: "//".utf8)
    let url = isPath ? "\(origin)\(url)" : url
    guard let location = try? Location(url), location.origin == origin,
      let authority = url.firstRange(of: "://")
    else { return nil }
    let rest = url[authority.upperBound...].drop { $0 != "/" && $0 != "?" && $0 != "#" }
      .prefix { $0 != "#" }
    return rest.utf8.starts(with: "/".utf8) ? String(rest) : "/" + rest
  }

  /// Sends a request once; a kept connection that the server has closed before is replaced.
  private func attempt(
    _ request: ClientRequest, _ authorization: SharedSecret?, on connection: HTTPConnection?
  ) async throws(MessagingClientError) -> (ClientResponse, HTTPConnection) {
    var request = request
    if let authorization { request.headers.append(("Authorization", SecretText(authorization))) }
    try check(request)
    var candidate = connection
    while true {
      let used: HTTPConnection
      var isKnown = true
      if let known = candidate ?? idle.withLock({ $0.popLast() }) {
        candidate = nil
        guard await known.canSend() else {
          known.close()
          continue
        }
        used = known
      } else {
        log.connects()
        used = try await connector.openHTTP()
        isKnown = false
      }
      do {
        log.sends(request)
        let response = try await used.send(request)
        log.receives(response)
        return (response, used)
      } catch ExchangeFailure.notSent where isKnown {
        used.close()
      } catch {
        used.close()
        throw MessagingClientError(error, origin)
      }
    }
  }

  /// Refuses what would end a line of the request, and secrets that others on the way could read.
  private func check(_ request: ClientRequest) throws(MessagingClientError) {
    guard request.target.text.isOneLine,
      request.headers.allSatisfy({ Self.isName($0.name) && $0.value.isOneLine })
    else {
      throw MessagingClientError(
        .invalidArgument, "a value has control characters, or the name of a header is none")
    }
    if request.target.text.hasSecret || request.headers.contains(where: { $0.value.hasSecret }) {
      try checkProtection()
    }
  }

  /// Refuses to send a secret that others on the way could read.
  func checkProtection() throws(MessagingClientError) {
    guard
      origin.isProtected || origin.isLoopback
        || challenges?.guard.limits.sendsCredentialsOverPlainHTTPBeyondLoopback == true
    else {
      throw MessagingClientError(
        .invalidArgument,
        "secrets are not sent to \(origin), because others on the way can read them",
        hint: "connect by https")
    }
  }

  /// RFC 9110, 5.1; the client itself writes the headers that say where a request ends.
  private static func isName(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.allSatisfy(ChallengeReader.isTokenByte)
      && !["host", "content-length", "transfer-encoding"].contains(HostName.lowercased(name))
  }

  private func keep(_ connection: HTTPConnection) {
    let dropped = idle.withLock { idle -> HTTPConnection? in
      guard connection.channel.isActive else { return nil }
      idle.append(connection)
      return idle.count > Self.maximumIdleCount ? idle.removeFirst() : nil
    }
    dropped?.close()
  }
}

extension MessagingClientError {
  /// Why an exchange has no answer.
  fileprivate init(_ error: any Error, _ origin: Origin) {
    self =
      switch error {
      case is CancellationError: MessagingClientError(.cancelled, "the request was cancelled")
      case ExchangeFailure.notSent:
        MessagingClientError(
          .cannotConnect, "\(origin) ended the connection before the request was sent",
          hint: "check the address, and that the server runs")
      case ExchangeFailure.timeout:
        MessagingClientError(.outcomeUnknown, "\(origin) did not answer in time")
      case ExchangeFailure.tooLarge:
        MessagingClientError(.invalidAnswer, "the answer of \(origin) is too large")
      case ExchangeFailure.malformedHandshake:
        MessagingClientError(
          .invalidAnswer, "the answer of \(origin) is no valid WebSocket handshake")
      case ExchangeFailure.malformed:
        MessagingClientError(.invalidAnswer, "the answer of \(origin) is no HTTP")
      case ExchangeFailure.untrusted:
        MessagingClientError(
          .untrustedServer, "no protected connection to \(origin)",
          hint: "check the server's certificate, and the authorities that the client trusts")
      default:
        MessagingClientError(
          .outcomeUnknown, "the connection to \(origin) was lost before the answer")
      }
  }

  /// Why a server refuses a request, by the status of its answer.
  init(_ response: ClientResponse, _ message: String) {
    let code: Code =
      switch response.status {
      case 401: .unauthenticated
      case 403: .forbidden
      case 408, 429, 500..<600: .busy
      default: .refused
      }
    self.init(code, "\(message): HTTP status \(response.status)", status: response.status)
  }
}
