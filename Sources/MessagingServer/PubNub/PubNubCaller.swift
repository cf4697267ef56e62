internal import AccessControl
internal import ApplicationStore
internal import Foundation
internal import MessagingQueue

/// Who makes a request to PubNub's API, and what that caller can do.
struct PubNubCaller: Sendable {
  let application: DirectoryEntry
  /// Nil for a token that the application has not signed: it is refused, in an open application too.
  let principal: Principal?
  /// Whether the call acts under a user id that is not the one of its credential: it is refused.
  let isOtherUser: Bool
  /// The signature of the request; one that is not valid is ignored where something else gives the right.
  let signature: RequestSignature

  /// What the caller could log in by; none for a caller who speaks PubNub's own forms.
  let challenges: [Challenge]

  /// Finds out who asks.
  ///
  /// - Parameters:
  ///   - login: whom the fields `Authorization` name; nil without such fields, or where `auth` or a signature counts.
  ///   - challenges: those of the application.
  /// - Throws: an error of OpenSSL.
  init(
    _ request: PubNubRequest, of application: DirectoryEntry, in directory: ApplicationDirectory,
    isProtected: Bool, login: Principal?, challenges: [Challenge], at now: Date
  ) throws {
    self.application = application
    var signature = try RequestSignature.of(request.raw, under: application.application, at: now)
    if case .valid(let form) = signature, !form.signsBody, !isProtected { signature = .mismatch }
    self.signature = signature
    self.challenges = request.hasOwnCredentials ? [] : challenges
    if case .valid = signature {
      principal = .signed(application.id)
    } else if let login {
      principal = login
    } else {
      principal = try Self.principal(request, application, directory)
    }
    isOtherUser =
      principal?.userID.map { own in
        request.actingUserIDs.contains { !$0.utf8.elementsEqual(own.utf8) }
      } ?? false
  }

  private static func principal(
    _ request: PubNubRequest, _ application: DirectoryEntry, _ directory: ApplicationDirectory
  ) throws -> Principal? {
    guard let auth = request.raw.value("auth"), !auth.isEmpty else { return .anonymous }
    switch try application.signer.read(auth) {
    case .token(let token): return .token(token, userID: request.userID)
    case .forged: return nil
    case .other:
      guard auth.count <= AuthKeyHasher.maximumByteCount else { return nil }
      return .authKey(try directory.hash(auth, of: application.id))
    }
  }

  /// The answer to a refused call: a challenge where a login can help, else PubNub's words.
  func answer(to refused: RefusedNames) -> HTTPResponse? {
    guard let reply = refusal(refused) else { return nil }
    return refused.decision.flatMap { challenge(after: $0) } ?? HTTPResponse(reply)
  }

  /// The challenge after a refusal; nil where a login cannot help.
  func challenge(after decision: Decision) -> HTTPResponse? {
    guard !challenges.isEmpty else { return nil }
    let canHelp =
      switch decision.reason {
      case .unknownUser, .passwordChanged, .tokenExpired, .tokenRevoked: true
      case .noGrant, .needsAuthority: if case .anonymous = principal { true } else { false }
      default: false
      }
    return canHelp ? .unauthorized(challenges) : nil
  }

  private func refusal(_ refused: RefusedNames) -> AccessReply? {
    guard let decision = refused.decision else { return nil }
    switch signature {
    case .invalidTimestamp: return .invalidTimestamp
    case .mismatch: return .invalidSignature
    case .missing, .valid:
      return decision.reply(channels: refused.channels, groups: refused.groups)
    }
  }
}

extension DirectoryEntry {
  var id: ApplicationID { application.id }

  /// The engine's channel of a name in this application.
  ///
  /// - Throws: `invalidChannel` if both together are too long.
  func channel(_ name: ChannelName) throws(EngineError) -> Channel {
    try Channel("\(application.name)/\(name.text)")
  }

  func channels(
    _ names: some Sequence<ChannelName>, _ family: PubNubFamily
  ) throws(PubNubRefusal) -> [Channel] {
    var channels: [Channel] = []
    for name in names {
      guard let channel = try? channel(name) else {
        throw PubNubRefusal(family, 400, "Invalid Channel")
      }
      channels.append(channel)
    }
    return channels
  }
}

/// The names of a call that its caller has no right to, and the end of what was allowed.
struct RefusedNames: Sendable {
  var channels: [ChannelName] = []
  var groups: [GroupName] = []
  /// A refusal; nil if everything is allowed.
  var decision: Decision?
  /// When the first of the decisions ends; nil for never.
  var end: Date?

  mutating func add(_ decision: Decision, _ name: ChannelName) {
    if note(decision) { channels.append(name) }
  }

  mutating func add(_ decision: Decision, _ name: GroupName) {
    if note(decision) { groups.append(name) }
  }

  mutating func note(_ decision: Decision) -> Bool {
    if decision.isAllowed {
      if let end = decision.end { self.end = self.end.map { min($0, end) } ?? end }
      return false
    }
    self.decision = self.decision ?? decision
    return true
  }
}
