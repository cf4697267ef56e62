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
