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
