internal import AccessControl
internal import ApplicationStore
internal import Foundation

extension OpenHome {
  /// Decides about a subscription.
  ///
  /// - Parameter client: who has logged in at the handshake; an `auth` of the subscription counts instead.
  /// - Returns: who subscribes, and when the right ends; nil for never.
  /// - Throws: ``PusherRefusal``.
  func authorize(
    _ request: PusherSubscribing, by client: Principal, socketID: String,
    of application: DirectoryEntry
  ) throws(PusherRefusal) -> (Principal, Date?) {
    let principal = try principal(request, client, socketID, application)
    if case .user(let user, _) = principal, let member = request.member,
      !member.id.utf8.elementsEqual(user.text.utf8)
    {
      throw .forbidden("user_id is not the name of the user who has logged in")
    }
    let name = request.channel.name
    let decision = directory.decide(
      principal, .subscribe, Resource(.channel(name), of: application.id), at: now())
    guard decision.isAllowed else {
      throw .forbidden(decision.ground(of: .subscribe, on: .channel(name)))
    }
    return (principal, decision.end)
  }

  private func principal(
    _ request: PusherSubscribing, _ client: Principal, _ socketID: String,
    _ application: DirectoryEntry
  ) throws(PusherRefusal) -> Principal {
    let isPublic = request.channel.kind == .public
    do {
      switch try application.signer.read(request.auth.utf8) {
      case .token(let token): return request.bearer(of: token)
      case .forged: throw PusherRefusal.unauthorized("this application has not signed the token")
      // A public channel needs no signature, and clients send an empty one.
      case .other where isPublic || request.auth.isEmpty: return try request.claimed(by: client)
      case .other: break
      }
      if let principal = try user(request, socketID, application) { return principal }
      guard
        try PusherSignature.authorizes(
          request.auth, socketID: socketID, channel: request.channel.name,
          channelData: request.channelData, under: application.application)
      else {
        throw PusherRefusal.unauthorized(
          "auth is not the signature of this channel for this connection")
      }
      return .subscriber(request.channel.name, of: application.id)
    } catch let refusal as PusherRefusal {
      throw refusal
    } catch {
      throw PusherRefusal(
        type: "InternalError", status: 500, message: "the signature cannot be verified")
    }
  }

  /// The user whom the authorization endpoint of this server has authorized; nil if `auth` says nothing of that.
  private func user(
    _ request: PusherSubscribing, _ socketID: String, _ application: DirectoryEntry
  ) throws -> Principal? {
    guard let signature = PusherUserSignature(request.auth, of: application.application),
      let password = directory.verifier(of: signature.user, of: application.id)?.version,
      try signature.authorizes(
        password: password, socketID: socketID, channel: request.channel.name,
        under: application.application)
    else { return nil }
    return .user(signature.user, password: password)
  }
}

extension PusherSubscribing {
  /// The bearer of a token; on channels without presence the client names no user, so the token does.
  fileprivate func bearer(of token: Token) -> Principal {
    .token(token, userID: member?.id ?? token.contents.authorizedUserID)
  }

  /// Who subscribes without an `auth`.
  ///
  /// - Throws: ``PusherRefusal`` for an anonymous client on a channel that needs an authority.
  fileprivate func claimed(by client: Principal) throws(PusherRefusal) -> Principal {
    switch client {
    case .token(let token, _): return bearer(of: token)
    case .anonymous where channel.kind != .public: throw .unauthorized("auth is missing")
    default: return client
    }
  }
}
