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

extension VaultPolicy {
  /// What a number of a policy may be: from 0 to a maximum.
  struct Bound: Sendable {
    let member: String
    let maximum: Int
  }

  /// The first number that is out of its bounds.
  var brokenBound: Bound? {
    let numbers = [
      (minimumLength, Bound(member: "minimumLength", maximum: 1024)),
      (minimumUniqueCharacters, Bound(member: "minimumUniqueCharacters", maximum: 256)),
      (expirationDays, Bound(member: "expirationDays", maximum: 36_500)),
      (lockTimeoutSeconds, Bound(member: "lockTimeoutSeconds", maximum: 31_536_000)),
      (retryLimit, Bound(member: "retryLimit", maximum: ClearMembers.maximumRetryLimit)),
    ]
    return numbers.first { number, bound in !(0...bound.maximum).contains(number) }?.1
  }

  /// - Throws: `invalidArgument` for a number that is out of its bounds.
  func requireValid() throws(VaultError) {
    guard let bound = brokenBound else { return }
    throw VaultError(
      .invalidArgument, "\(bound.member) of a policy is not from 0 to \(bound.maximum)")
  }
}

/// The sealed part of a policy; the retry limit is a clear member.
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
  /// What the unlocked vault demands of passwords, how long it stays open, and what wrong attempts
  /// lead to.
  ///
  /// - Throws: `locked`; what reading throws.
  public func policy() throws(VaultError) -> VaultPolicy {
    try withContents { open in
      var policy = open.contents.policy
      policy.retryLimit = open.clear.retryLimit
      return policy
    }
  }

  /// Sets the policy of the unlocked vault; durable on return.
  ///
  /// The password in place is not looked at: if it breaks a new rule, or has expired by it, the next
  /// unlock says so, and ``changePassword(from:to:)`` takes it. A lock timeout that differs from the
  /// one before counts from now; in other processes, from when they notice.
  ///
  /// - Throws: `locked`, `invalidArgument` for a number out of its bounds, `writeFailed`; what
  ///   reading throws.
  public func setPolicy(_ policy: VaultPolicy) throws(VaultError) {
    try policy.requireValid()
    try change { draft in
      draft.contents.policy = policy
      draft.clear.retryLimit = policy.retryLimit
    }
  }
}

extension VaultDraft {
  /// - Throws: for a new password that breaks the vault's policy, the rule's own error.
  borrowing func requireAllowed(
    _ new: borrowing Credentials, of id: VaultID
  ) throws(VaultError) {
    try contents.policy.check(new, for: .setting, of: id)
  }
}
