internal import AccessControl
internal import ApplicationStore
internal import Foundation
internal import MessagingQueue
internal import VaultCrypto

/// The application that a client names, and who the client is.
typealias STOMPClientIdentity = (application: DirectoryEntry, principal: Principal)

extension OpenHome {
  /// Finds the application that a client names, and who the client is.
  ///
  /// - Parameter handshake: what the path and the fields of a WebSocket said; `login` and `passcode` count instead.
  /// - Throws: ``STOMPEnding``.
  func authenticate(
    _ connecting: STOMPConnecting, _ handshake: STOMPHandshake? = nil, isProtected: Bool,
    from source: LoginSource
  ) async throws(STOMPEnding) -> STOMPClientIdentity {
    let login = connecting.login ?? ""
    let passcode = Array((connecting.passcode ?? "").utf8)
    let application = try application(of: connecting, handshake)
    let client: Principal =
      switch handshake?.login {
      case nil, .anonymous: .anonymous
      case .principal(let principal): principal
      case .sealed: throw .sealed
      }
    if login.isEmpty, passcode.isEmpty {
      // Names can be guessed: a client without a key is only who has logged in at the handshake.
      if case .anonymous = client { throw .unknownClient }
      return (application, client)
    }
    guard login == application.application.publishKey else {
      let user = try await user(
        login, passcode, of: application, isProtected: isProtected, from: source)
      return (application, user)
    }
    if passcode.isEmpty { return (application, client) }
    if application.application.secretKey.isEqual(to: passcode) {
      guard isProtected else {
        throw .forbidden("the secret key is good only over TLS or loopback")
      }
      return (application, .signed(application.id))
    }
    do {
      switch try application.signer.read(passcode) {
      case .token(let token):
        // The client names no user, so the token does.
        return (application, .token(token, userID: token.contents.authorizedUserID))
      case .forged: break
      case .other:
        if passcode.count <= AuthKeyHasher.maximumByteCount {
          return (application, .authKey(try directory.hash(passcode, of: application.id)))
        }
      }
    } catch {
      throw .failed
    }
    throw .forbidden("the passcode is neither an auth key nor a token of the application")
  }

  private func application(
    of connecting: STOMPConnecting, _ handshake: STOMPHandshake?
  ) throws(STOMPEnding) -> DirectoryEntry {
    let named = connecting.host.flatMap { directory.application(named: $0) }
    if let handshake {
      guard let application = directory.application(named: handshake.application),
        named == nil || named?.id == application.id
      else { throw .unknownClient }
      return application
    }
    // Clients whose host is the server's name, or that send none, name the application by its key.
    guard let application = named ?? directory.application(publishKey: connecting.login ?? "")
    else { throw .unknownClient }
    return application
  }

  /// The user of the application with this name and password.
  private func user(
    _ login: String, _ passcode: [UInt8], of application: DirectoryEntry, isProtected: Bool,
    from source: LoginSource
  ) async throws(STOMPEnding) -> Principal {
    guard directory.hasUsers(application.id), let name = try? Name(login) else {
      throw .unknownClient
    }
    let result = await self.login(
      .password(user: name, Password(SecretBytes(copying: passcode))), to: application,
      from: source, isProtected: isProtected)
    switch result {
    case .principal(let principal): return principal
    case .wrong: throw .unknownClient
    case .unprotected: throw .forbidden("a password is good only over TLS or loopback")
    case .wait(let seconds):
      throw STOMPEnding(
        message: "too many wrong passwords: connect again in \(seconds) seconds", status: 429)
    case .busy:
      throw STOMPEnding(message: "too many logins at this moment: connect again", status: 503)
    }
  }
}

extension STOMPConnection.Established {
  func decide(
    _ operation: AccessOperation, _ channel: ChannelName, _ consumer: Consumer, _ now: Date
  ) -> Decision {
    guard let name = try? Name(consumer.name) else { return .refused(.notApplicable) }
    return home.directory.decide(
      principal, operation, Resource(.consumer(name, of: channel), of: application.id), at: now)
  }

  /// Whether the client can get the messages of a destination, and how it ends if not.
  func decide(_ destination: STOMPDestination, _ now: Date) -> (Decision, STOMPEnding) {
    switch destination {
    case .topic(let channel):
      let decision = home.directory.decide(
        principal, .subscribe, Resource(.channel(channel), of: application.id), at: now)
      return (decision, .forbidden(decision.ground(of: .subscribe, on: .channel(channel))))
    case .queue(let channel, let consumer):
      let decision = decide(.lease, channel, consumer, now)
      return (decision, .forbidden(decision.ground(of: .lease, on: .channel(channel))))
    }
  }
}
