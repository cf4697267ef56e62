public import Foundation

/// Whether an operation is allowed, why, and until when.
public struct Decision: Sendable, Hashable {
  /// What a grant that allows an operation covers.
  public enum Level: Sendable, Hashable {
    /// The whole application.
    case application
    /// The pattern that covers the channel.
    case pattern
    /// All groups.
    case allGroups
    /// The resource itself; for a consumer its channel too.
    case name
  }

  /// The rule that decided.
  public enum Reason: Sendable, Hashable {
    /// The application is open to everyone.
    case openApplication
    /// A grant: the one that lasts longest, and of equals the broadest.
    case grant(Level)
    /// A grant for everyone, chosen by the same rule.
    case grantForEveryone(Level)
    /// A grant for a role of the user, chosen by the same rule.
    case grantForRole(Name, Level)
    /// The resources of a token.
    case tokenResource
    /// A pattern of a token, by its place among the patterns of this kind.
    case tokenPattern(Int)
    /// A signature under the secret key gives every right.
    case signature
    /// The application's own endpoint authorized this channel.
    case endpoint

    /// No rule gives the right.
    case noGrant
    /// Only the secret key gives this right.
    case needsSignature
    /// The channel is private, and what everyone has does not reach it.
    case needsAuthority
    /// There is no such application.
    case unknownApplication
    /// The credential belongs to another application.
    case otherApplication
    /// The token has ended.
    case tokenExpired
    /// The token was revoked.
    case tokenRevoked
    /// The credential is for another user id.
    case otherUser
    /// The application has no such user, or no longer.
    case unknownUser
    /// The user has another password than the one that was checked.
    case passwordChanged
    /// Only the server sends messages to this channel.
    case reservedName
    /// A pattern is not a channel that has messages.
    case pattern
    /// The operation has no meaning for this kind of resource.
    case notApplicable
  }

  /// Whether the operation is allowed.
  public let isAllowed: Bool

  /// The rule that decided.
  public let reason: Reason

  /// The moment from which this is no longer allowed, if nothing changes before; nil if that moment
  /// is not known, and for a refusal.
  public let end: Date?

  package static func allowed(_ reason: Reason, until end: Date? = nil) -> Decision {
    Decision(isAllowed: true, reason: reason, end: end)
  }

  package static func refused(_ reason: Reason) -> Decision {
    Decision(isAllowed: false, reason: reason, end: nil)
  }

  /// The decision in words, for `explain`: what was decided, and by which rule.
  ///
  /// It names the scope, never an auth key or a token.
  public func explanation(of operation: AccessOperation, on resource: Resource) -> String {
    let until = end.map { " until \($0.formatted(.iso8601))" } ?? ""
    return "\(operation.rawValue) on \(resource.scope) is \(isAllowed ? "allowed" : "refused")"
      + "\(until): \(ground(of: operation, on: resource.scope))"
  }

  /// The rule that decided, in words.
  package func ground(of operation: AccessOperation, on scope: Scope) -> String {
    let right = operation.right.map { "\($0)" } ?? "the secret key"
    return switch reason {
    case .openApplication: "the application is open"
    case .grant(let level): "a grant of \(right) on \(level.words(scope)) for this caller"
    case .grantForEveryone(let level): "a grant of \(right) on \(level.words(scope)) for everyone"
    case .grantForRole(let role, let level):
      "a grant of \(right) on \(level.words(scope)) for role '\(role)' of this user"
    case .tokenResource: "the token lists the name with \(right)"
    case .tokenPattern(let number): "pattern \(number + 1) of the token gives \(right)"
    case .signature: "the request is signed with the secret key"
    case .endpoint: "the application's endpoint authorized this channel"
    case .noGrant: "nothing gives this caller \(right)"
    case .needsSignature: "the request must be signed with the secret key"
    case .needsAuthority:
      "the channel is private: what everyone has does not reach it, and nothing else gives this "
        + "caller \(right)"
    case .unknownApplication: "there is no such application"
    case .otherApplication: "the credential belongs to another application"
    case .tokenExpired: "the token has expired"
    case .tokenRevoked: "the token was revoked"
    case .otherUser: "the credential is for another user id"
    case .unknownUser: "the application has no such user"
    case .passwordChanged: "the user has another password now"
    case .reservedName: "only the server sends messages to this channel"
    case .pattern: "a pattern is not a channel that has messages"
    case .notApplicable: "the operation does not work on this kind of resource"
    }
  }
}

extension Decision.Level {
  /// What the grant covers, for an operation on a scope.
  fileprivate func words(_ scope: Scope) -> String {
    switch self {
    case .application: "the application"
    case .pattern: scope.channel?.coveringPattern.map { "pattern '\($0)'" } ?? "a pattern"
    case .allGroups: "all groups"
    case .name: "\(scope)"
    }
  }
}

extension GrantHolder: CustomStringConvertible {
  /// The holder in words; an auth key by the first digits of its hash.
  public var description: String {
    switch self {
    case .everyone: "everyone"
    case .authKey(let hash): "auth key \(hash)"
    case .user(let name): "user '\(name)'"
    case .role(let name): "role '\(name)'"
    }
  }
}
