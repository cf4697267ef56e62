public import Foundation

/// Who has a grant.
public enum GrantHolder: Sendable, Hashable {
  /// Every caller that is not decided by a token.
  case everyone
  /// Callers with an auth key.
  case authKey(AuthKeyHash)
  /// A user of the application's realm.
  case user(Name)
  /// The users with a role.
  case role(Name)
}

/// Rights on a scope for a holder: an entry of PubNub's access manager, version 2.
///
/// A grant never forbids: what is allowed is the union of all grants that apply.
public struct Grant: Sendable, Hashable {
  /// What a grant replaces: the entry for the same holder and the same scope.
  public struct Key: Sendable, Hashable {
    /// The application.
    public let application: ApplicationID
    /// Who has the rights.
    public let holder: GrantHolder
    /// What the rights are for.
    public let scope: Scope

    /// Makes a key.
    public init(_ scope: Scope, of application: ApplicationID, holder: GrantHolder) {
      self.application = application
      self.holder = holder
      self.scope = scope
    }
  }

  /// The longest lifetime in minutes: a year.
  public static let maximumMinutes = 525_600

  /// The entry.
  public let key: Key

  /// The rights; none removes the entry.
  public let rights: Rights

  /// When the grant was made.
  public let start: Date

  /// The lifetime in minutes; 0 is for ever.
  public let minutes: Int

  /// Makes a grant.
  ///
  /// - Parameters:
  ///   - minutes: 0 to ``maximumMinutes``; 0 is for ever.
  ///   - start: the current time.
  /// - Throws: `invalidGrant`.
  public init(
    _ rights: Rights, on key: Key, minutes: Int, start: Date
  ) throws(AccessError) {
    guard (0...Self.maximumMinutes).contains(minutes) else {
      throw AccessError(
        .invalidGrant, "a grant for \(minutes) minutes is not possible",
        hint: "use 1 to \(Self.maximumMinutes), or 0 for a grant without end")
    }
    self.key = key
    self.rights = rights
    self.start = start
    self.minutes = minutes
  }

  /// The moment from which the grant allows nothing; nil for a grant without end.
  public var end: Date? { Self.end(start: start, minutes: minutes) }

  static func end(start: Date, minutes: Int) -> Date? {
    minutes == 0 ? nil : start.addingTimeInterval(Double(minutes) * 60)
  }
}
