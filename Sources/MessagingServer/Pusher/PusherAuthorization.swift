internal import AccessControl
internal import ApplicationStore
internal import Foundation

extension OpenHome {
  /// Decides about a subscription.
  ///
  /// - Returns: who subscribes, and when the right ends; nil for never.
  /// - Throws: ``PusherRefusal``.
  func authorize(
    _ request: PusherSubscribing, socketID: String, of application: DirectoryEntry
  ) throws(PusherRefusal) -> (Principal, Date?) {
    let principal = try principal(request, socketID, application)
    let name = request.channel.name
    let decision = directory.decide(
      principal, .subscribe, Resource(.channel(name), of: application.id), at: now())
    guard decision.isAllowed else {
      throw .forbidden(decision.ground(of: .subscribe, on: .channel(name)))
    }
    return (principal, decision.end)
  }

  private func principal(
    _ request: PusherSubscribing, _ socketID: String, _ application: DirectoryEntry
  ) throws(PusherRefusal) -> Principal {
    let isPublic = request.channel.kind == .public
    do {
      switch try application.signer.read(request.auth.utf8) {
      case .token(let token):
        // On other channels the client names no user, so the token does.
        let userID = request.member?.id ?? token.contents.authorizedUserID
        return .token(token, userID: userID)
      case .forged: throw PusherRefusal.unauthorized("this application has not signed the token")
      // A public channel needs no signature, and clients send an empty one.
      case .other where isPublic: return .anonymous
      case .other: break
      }
      guard !request.auth.isEmpty else { throw PusherRefusal.unauthorized("auth is missing") }
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
}
