/// The rules of a vault: for its password, its lock timeout and its failed attempts.
///
/// The rules for passwords apply when a password is set and when it is used to unlock. They do not
/// apply to recovery codes and key files. A password that breaks a rule set later does not lock its
/// owner out: `changePassword(from:to:)` accepts it as the current one. Until then an unlock with
/// it fails with the rule's own error.
///
/// Characters are Unicode scalars; in a password that is not UTF-8, they are bytes.
public struct VaultPolicy: Sendable, Equatable {
  /// Whether the standard credentials can be set and used.
  ///
  /// The rules for characters do not apply to them.
  ///
  /// Default: true.
  public var allowsStandardPassword = true

  /// The minimum number of characters in a password, at most 1024.
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

  /// Whether a password needs a special character.
  ///
  /// That is a character other than a letter, a mark that belongs to a letter, or a decimal digit.
  /// A space counts.
  ///
  /// Default: false.
  public var requiresSpecial = false

  /// The minimum number of different characters in a password, at most 256.
  ///
  /// Default: 0.
  public var minimumUniqueCharacters = 0

  /// The age in days at which a password expires and must be changed, at most 36,500; 0 for never.
  ///
  /// The age counts from the time at which the password was set, on the wall clock. Default: 0.
  public var expirationDays = 0

  /// The seconds after an unlock at which the vault locks itself, at most 31,536,000 (a year); 0
  /// for never.
  ///
  /// The time counts on the boot clock, including sleep. Default: 0.
  public var lockTimeoutSeconds = 0

  /// The number of consecutive failed attempts that are allowed, at most 1000; 0 for no limit.
  ///
  /// One more failed attempt **deletes the vault** and its contents.
  /// The limit can be read without a password, and anyone who can write the files can undo it.
  /// Default: 0.
  public var retryLimit = 0

  /// The policy of a new vault.
  public init() {}
}

extension VaultPolicy {
  /// The first number that is greater than its maximum or negative.
  var brokenBound: (member: String, number: Int, maximum: Int)? {
    let numbers: [(member: String, number: Int, maximum: Int)] = [
      ("minimumLength", minimumLength, 1024),
      ("minimumUniqueCharacters", minimumUniqueCharacters, 256),
      ("expirationDays", expirationDays, 36_500),
      ("lockTimeoutSeconds", lockTimeoutSeconds, 31_536_000),
      ("retryLimit", retryLimit, ClearMembers.maximumRetryLimit),
    ]
    return numbers.first { !(0...$0.maximum).contains($0.number) }
  }

  /// - Throws: `invalidArgument` for a number that is out of range.
  func requireValid() throws(VaultError) {
    guard let bound = brokenBound else { return }
    throw VaultError(
      .invalidArgument, "policy member '\(bound.member)' is not from 0 to \(bound.maximum)")
  }
}

/// The sealed part of a policy; the retry limit is a clear member instead.
extension VaultPolicy {
  init(parsing bytes: RawSpan, _ range: Range<Int>) throws(FormatFault) {
    let part = "policy"
    let members = try JSONText.members(
      [
        "standardPassword", "minimumLength", "digit", "upper", "lower", "special",
        "minimumUniqueCharacters", "expirationDays", "lockTimeoutSeconds",
      ], in: bytes, range, of: part)
    allowsStandardPassword = try JSONText.boolean(in: bytes, members[0], of: part)
    minimumLength = try JSONText.number(in: bytes, members[1], of: part)
    requiresDigit = try JSONText.boolean(in: bytes, members[2], of: part)
    requiresUpper = try JSONText.boolean(in: bytes, members[3], of: part)
    requiresLower = try JSONText.boolean(in: bytes, members[4], of: part)
    requiresSpecial = try JSONText.boolean(in: bytes, members[5], of: part)
    minimumUniqueCharacters = try JSONText.number(in: bytes, members[6], of: part)
    expirationDays = try JSONText.number(in: bytes, members[7], of: part)
    lockTimeoutSeconds = try JSONText.number(in: bytes, members[8], of: part)
    if let bound = brokenBound {
      throw FormatFault(part, "\(bound.member) is greater than \(bound.maximum)")
    }
  }

  var text: String {
    """
    {"standardPassword":\(allowsStandardPassword),"minimumLength":\(minimumLength),\
    "digit":\(requiresDigit),"upper":\(requiresUpper),"lower":\(requiresLower),\
    "special":\(requiresSpecial),"minimumUniqueCharacters":\(minimumUniqueCharacters),\
    "expirationDays":\(expirationDays),"lockTimeoutSeconds":\(lockTimeoutSeconds)}
    """
  }
}

extension Vault {
  /// The policy of the unlocked vault.
  ///
  /// - Throws: `locked`; the errors of reading.
  public func policy() throws(VaultError) -> VaultPolicy {
    try withContents { opened in
      var policy = opened.contents.policy
      policy.retryLimit = opened.clear.retryLimit
      return policy
    }
  }

  /// Sets the policy of the unlocked vault; durable on return.
  ///
  /// The current password is not checked. If it breaks a new rule or has expired under it, the next
  /// unlock reports this, and ``changePassword(from:to:)`` accepts the password. A changed lock
  /// timeout counts from now; in other processes, from the time at which they read the change.
  ///
  /// - Throws: `locked`, `invalidArgument` for a number that is out of range, `writeFailed`; the
  ///   errors of reading.
  public func setPolicy(_ policy: VaultPolicy) throws(VaultError) {
    try policy.requireValid()
    try change { draft in
      draft.contents.policy = policy
      draft.clear.retryLimit = policy.retryLimit
    }
  }
}
