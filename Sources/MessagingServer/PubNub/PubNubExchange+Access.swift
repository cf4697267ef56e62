internal import AccessControl
internal import ApplicationStore
internal import Foundation

extension PubNubExchange {
  /// A call of the access manager: it needs a signature with the secret key.
  func access(_ call: AccessManagerCall) throws(PubNubRefusal) {
    let decision = home.decide(caller, .manageAccess, .application, home.now())
    guard decision.isAllowed else {
      let reply: AccessReply =
        caller.signature == .invalidTimestamp ? .invalidTimestamp : .invalidSignature
      return answer(HTTPResponse(reply))
    }
    let application = caller.application
    let raw = request.raw
    run { [home] in
      do {
        return HTTPResponse(try await Self.reply(to: call, raw, of: application, home))
      } catch let reply as AccessReply {
        return HTTPResponse(reply)
      }
    }
  }

  private static func reply(
    to call: AccessManagerCall, _ raw: RawRequest, of application: DirectoryEntry,
    _ home: OpenHome
  ) async throws -> AccessReply {
    let now = home.now()
    switch call {
    case .grant:
      let query = try GrantQuery(raw)
      let grants = try query.grants(
        of: application.id, hashedBy: home.store.keys.hasher, start: now)
      try await home.store.put(grants)
      try await home.refresh()
      return query.reply(subscribeKey: application.application.subscribeKey)
    case .audit:
      let query = try AuditQuery(raw)
      return try home.directory.withIndex { index in
        try query.reply(
          from: index, of: application.application, hashedBy: home.store.keys.hasher, at: now)
      }
    case .grantToken:
      let body = try GrantTokenRequest(body: raw.body)
      return .token(try application.signer.issue(try body.contents(issue: now)))
    case .revokeToken(let text):
      let token = try TokenRevocation.token(text, readBy: application.signer, at: now)
      try await home.store.revoke(token.digest, of: application.id, until: token.end)
      try await home.refresh()
      return .tokenRevocation
    }
  }
}
