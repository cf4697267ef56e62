/// The error of a value that this module refuses.
///
/// An error never carries a key, an auth key, a token or a password.
public struct AccessError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The kind of failure, to be compared with the static members; a new version can add members.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The name of the member.
    public let description: String

    init(_ name: String) { description = name }

    /// The name or a key of an application breaks its rule.
    public static let invalidApplication = Code("invalidApplication")
    /// The name of a channel, a group, a consumer or a user breaks its rule.
    public static let invalidName = Code("invalidName")
    /// The lifetime or the rights of a grant are out of range.
    public static let invalidGrant = Code("invalidGrant")
    /// A pattern of a token has no meaning here, or is too large.
    public static let invalidPattern = Code("invalidPattern")
    /// The contents of a token to be made are out of range.
    public static let invalidToken = Code("invalidToken")
    /// The password of a user is too short, too long, or has a control character.
    public static let invalidPassword = Code("invalidPassword")
  }

  /// The kind of failure.
  public let code: Code

  /// What failed and where, in lower case.
  public let message: String

  /// The next step, if there is one.
  public let hint: String?

  init(_ code: Code, _ message: String, hint: String? = nil) {
    self.code = code
    self.message = message
    self.hint = hint
  }

  /// The message, and the hint in brackets.
  public var description: String { hint.map { "\(message) (\($0))" } ?? message }
}
