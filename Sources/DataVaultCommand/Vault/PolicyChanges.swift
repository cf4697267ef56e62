internal import ArgumentParser
internal import DataVault

/// What `policy set` changes: an option a field.
struct PolicyChanges: ParsableArguments {
  @Flag(inversion: .prefixedNo, help: "Whether the publicly known password may be used.")
  var standardPassword: Bool?

  @Option(help: ArgumentHelp("The fewest characters of a password.", valueName: "n"))
  var minimumLength: Int?

  @Flag(inversion: .prefixedNo, help: "Whether a password needs a digit.")
  var digit: Bool?

  @Flag(inversion: .prefixedNo, help: "Whether a password needs an upper-case letter.")
  var upper: Bool?

  @Flag(inversion: .prefixedNo, help: "Whether a password needs a lower-case letter.")
  var lower: Bool?

  @Flag(
    inversion: .prefixedNo,
    help: "Whether a password needs a character that is neither a letter nor a digit.")
  var special: Bool?

  @Option(help: ArgumentHelp("The fewest different characters of a password.", valueName: "n"))
  var minimumUniqueCharacters: Int?

  @Option(
    help: ArgumentHelp(
      "The days after which a password must be changed; 0 for never.", valueName: "n"))
  var expirationDays: Int?

  @Option(
    help: ArgumentHelp(
      "How long the vault stays open in a program: 30s, 15m, 2h, 7d; 0s for ever.",
      valueName: "time"))
  var lockTimeout: DurationArgument?

  @Option(
    help: ArgumentHelp(
      "The wrong attempts in a row that are allowed: the next one deletes the vault; 0 for any.",
      valueName: "n"))
  var retryLimit: Int?

  func validate() throws {
    let numbers = [minimumLength, minimumUniqueCharacters, expirationDays, retryLimit]
    let flags = [standardPassword, digit, upper, lower, special]
    guard
      numbers.contains(where: { $0 != nil }) || flags.contains(where: { $0 != nil })
        || lockTimeout != nil
    else { throw ValidationError("name at least one rule to change") }
    if let lockTimeout, lockTimeout.duration.components.attoseconds != 0 {
      throw ValidationError("--lock-timeout is in whole seconds")
    }
  }

  func apply(to policy: inout VaultPolicy) {
    func take<Value>(_ value: Value?, _ field: WritableKeyPath<VaultPolicy, Value>) {
      if let value { policy[keyPath: field] = value }
    }
    take(standardPassword, \.allowsStandardPassword)
    take(minimumLength, \.minimumLength)
    take(digit, \.requiresDigit)
    take(upper, \.requiresUpper)
    take(lower, \.requiresLower)
    take(special, \.requiresSpecial)
    take(minimumUniqueCharacters, \.minimumUniqueCharacters)
    take(expirationDays, \.expirationDays)
    take((lockTimeout?.duration.components.seconds).map(Int.init), \.lockTimeoutSeconds)
    take(retryLimit, \.retryLimit)
  }
}
