/// What a vault demands of its password, how long it stays open, and what becomes of it after wrong
/// attempts.
///
/// The rules for passwords hold when a password is set and when it is used to unlock; recovery
/// codes and key files are not passwords. A password that breaks a rule set later does not lock its
/// owner out: `changePassword(from:to:)` takes it as the current one. An unlock by it fails until
/// then, with the rule's own error.
///
/// Characters are Unicode scalars; in a password that is not UTF-8, they are bytes.
public struct VaultPolicy: Sendable, Equatable {
  /// Whether the standard credentials may be set and used; the rules for characters do not concern
  /// them.
  ///
  /// Default: true.
  public var allowsStandardPassword = true

  /// The fewest characters of a password, at most 1024.
  ///
  /// Default: 8.
  public var minimumLength = 8

  /// Whether a password needs a decimal digit (Unicode category Nd).
  ///
  /// Default: false.
  public var requiresDigit = false

  /// Whether a password needs an upper-case letter (Unicode property Uppercase).
  ///
  /// Default: false.
  public var requiresUpper = false

  /// Whether a password needs a lower-case letter (Unicode property Lowercase).
  ///
  /// Default: false.
  public var requiresLower = false

  /// Whether a password needs a character that is neither a letter, a mark that belongs to one, nor
  /// a decimal digit: a space counts.
  ///
  /// Default: false.
  public var requiresSpecial = false

  /// The fewest different characters of a password, at most 256.
  ///
  /// Default: 0.
  public var minimumUniqueCharacters = 0

  /// The days after which a password must be changed, at most 36,500; 0 for never.
  ///
  /// They count from the moment it was set, on the wall clock. Default: 0.
  public var expirationDays = 0

  /// The seconds after an unlock after which the vault locks itself, at most 31,536,000 (a year);
  /// 0 for never.
  ///
  /// They count on the boot clock, time asleep included. Default: 0.
  public var lockTimeoutSeconds = 0

  /// The wrong attempts in a row that are allowed, at most 1000; 0 for any number.
  ///
  /// The next one **deletes the vault** and all it holds.
  /// It can be read without a password, and whoever can write the files can undo it. Default: 0.
  public var retryLimit = 0

  /// The policy of a new vault.
  public init() {}
}
