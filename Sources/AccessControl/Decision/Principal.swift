/// Who asks, as the server found out before the decision.
public enum Principal: Sendable {
  /// A caller without any credential.
  case anonymous
  /// A caller with an auth key of version 2.
  case authKey(AuthKeyHash)
  /// A caller with a token of version 3, whose signature was checked.
  ///
  /// - Parameters:
  ///   - userID: the `uuid` of the request.
  case token(Token, userID: String?)
  /// A user of the application's realm, whose password was checked; the user's roles count too.
  ///
  /// - Parameters:
  ///   - password: the one that was checked, so that a new one ends what it allowed; nil if none was.
  case user(Name, password: PasswordVersion? = nil)
  /// A server whose signature under the application's secret key was checked.
  case signed(ApplicationID)
  /// A Pusher client whom the application's own endpoint authorized for one channel.
  case subscriber(ChannelName, of: ApplicationID)

  /// The only user id under which the caller acts; nil for any.
  package var userID: String? {
    switch self {
    case .user(let name, _): name.text
    case .token(let token, _): token.contents.authorizedUserID
    case .anonymous, .authKey, .signed, .subscriber: nil
    }
  }

  /// The holder whose grants count beside those of everyone; nil if there is none.
  var holder: GrantHolder? {
    switch self {
    case .authKey(let hash): .authKey(hash)
    case .user(let name, _): .user(name)
    case .anonymous, .token, .signed, .subscriber: nil
    }
  }
}

/// What a change of access concerns, so that a server decides again only about these callers.
public enum AccessChange: Sendable, Hashable {
  /// Everyone who uses an application.
  case application(ApplicationID)
  /// Every caller of an application whom no token decides.
  case everyone(of: ApplicationID)
  /// The callers with an auth key, a user, or all users because a role has changed.
  case holder(GrantHolder, of: ApplicationID)
  /// The callers with a token.
  case token(TokenDigest, of: ApplicationID)

  /// The application that it concerns.
  package var application: ApplicationID {
    switch self {
    case .application(let id), .everyone(let id), .holder(_, let id), .token(_, let id): id
    }
  }

  /// Whether a decision about this principal in this application can differ now.
  public func concerns(_ principal: Principal, in application: ApplicationID) -> Bool {
    switch self {
    case .application(application): true
    case .everyone(application):
      switch principal {
      case .anonymous, .authKey, .user, .subscriber: true
      case .token, .signed: false
      }
    case .holder(.role, application): if case .user = principal { true } else { false }
    case .holder(let holder, application): principal.holder == holder
    case .token(let digest, application):
      if case .token(let token, _) = principal { token.digest == digest } else { false }
    case .application, .everyone, .holder, .token: false
    }
  }
}
