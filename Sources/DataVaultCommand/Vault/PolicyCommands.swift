internal import ArgumentParser
internal import CommandInterface
internal import DataVault

/// The command `datavault policy`.
struct PolicyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "policy",
    abstract: "Show or change a vault's rules for passwords, locking and retries.",
    subcommands: [PolicyShowCommand.self, PolicySetCommand.self])
}

/// The command `datavault policy show VAULT`.
struct PolicyShowCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show a vault's policy.")

  @OptionGroup var vault: VaultArgument
  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let vault = try await open(vault.id())
    let policy = PolicyReport(try await vault.policy())
    try report.print(policy) { policy.text }
  }
}

/// The report of `policy show`.
private struct PolicyReport: Encodable {
  let standardPassword: Bool
  let minimumLength: Int
  let digit: Bool
  let upper: Bool
  let lower: Bool
  let special: Bool
  let minimumUniqueCharacters: Int
  let expirationDays: Int
  let lockTimeoutSeconds: Int
  let retryLimit: Int

  init(_ policy: VaultPolicy) {
    standardPassword = policy.allowsStandardPassword
    minimumLength = policy.minimumLength
    digit = policy.requiresDigit
    upper = policy.requiresUpper
    lower = policy.requiresLower
    special = policy.requiresSpecial
    minimumUniqueCharacters = policy.minimumUniqueCharacters
    expirationDays = policy.expirationDays
    lockTimeoutSeconds = policy.lockTimeoutSeconds
    retryLimit = policy.retryLimit
  }

  var text: String {
    func word(_ isRequired: Bool) -> String { isRequired ? "yes" : "no" }
    func count(_ number: Int, _ unit: String) -> String {
      number > 0 ? "\(number) \(unit)" : "none"
    }
    return """
      standard password   \(standardPassword ? "allowed" : "not allowed")
      minimum length      \(minimumLength)
      digit               \(word(digit))
      upper               \(word(upper))
      lower               \(word(lower))
      special             \(word(special))
      unique characters   \(minimumUniqueCharacters)
      expiration          \(count(expirationDays, "days"))
      lock timeout        \(lockTimeoutSeconds > 0 ? OutputDescriptor.age(seconds: Int64(lockTimeoutSeconds), unit: " s") : "none")
      retry limit         \(retryLimit > 0 ? "\(retryLimit) wrong attempts, the next deletes the vault" : "none")\n
      """
  }
}

/// The command `datavault policy set VAULT`.
struct PolicySetCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "set",
    abstract: "Change a vault's policy. Rules that no option names stay as they are.",
    discussion: """
      Example:
        datavault policy set backup --minimum-length 12 --lock-timeout 15m

      The rules apply to a password that is set and to a password that unlocks. The command does \
      not check the current password. If that password breaks a new rule, the next command that \
      opens the vault with it fails with 78. Only 'datavault change-password' still accepts it; \
      'datavault rotate' can keep its slot. A lock timeout also counts while a command waits for \
      typing or for standard input.
      """)

  @OptionGroup var vault: VaultArgument
  @OptionGroup var changes: PolicyChanges
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let id = try vault.id()
    let vault = try await open(id)
    var policy = try await vault.policy()
    changes.apply(to: &policy)
    try await vault.setPolicy(policy)
    try confirm("changed the policy of vault '\(id)'")
  }
}

/// The options of `policy set`, one for each rule.
struct PolicyChanges: ParsableArguments {
  @Flag(
    inversion: .prefixedNo,
    help: """
      Whether the publicly known password is allowed. Of the other rules, only expiration applies \
      to it.
      """)
  var standardPassword: Bool?

  @Option(
    help: ArgumentHelp(
      "The minimum number of characters of a password, at most 1024; 8 in a new vault.",
      valueName: "n"))
  var minimumLength: Int?

  @Flag(inversion: .prefixedNo, help: "Whether a password needs a decimal digit.")
  var digit: Bool?

  @Flag(inversion: .prefixedNo, help: "Whether a password needs an upper-case letter.")
  var upper: Bool?

  @Flag(inversion: .prefixedNo, help: "Whether a password needs a lower-case letter.")
  var lower: Bool?

  @Flag(
    inversion: .prefixedNo,
    help: """
      Whether a password needs a character that is neither a letter nor a digit, such as a space.
      """)
  var special: Bool?

  @Option(
    help: ArgumentHelp("The minimum number of different characters, at most 256.", valueName: "n"))
  var minimumUniqueCharacters: Int?

  @Option(
    help: ArgumentHelp(
      "The days after which a password expires, at most 36500; 0 for never.", valueName: "n"))
  var expirationDays: Int?

  @Option(
    help: ArgumentHelp(
      "How long a vault stays unlocked in a program: 30s, 15m, 2h, 7d; 0s for no limit.",
      valueName: "time"))
  var lockTimeout: DurationArgument?

  @Option(
    help: ArgumentHelp(
      """
      Wrong attempts in a row, at most 1000; the next one deletes the vault and its items. 0 for \
      no limit.
      """,
      valueName: "n"))
  var retryLimit: Int?

  func validate() throws {
    let numbers: [(option: String, number: Int?, maximum: Int)] = [
      ("--minimum-length", minimumLength, 1024),
      ("--minimum-unique-characters", minimumUniqueCharacters, 256),
      ("--expiration-days", expirationDays, 36_500), ("--retry-limit", retryLimit, 1000),
    ]
    let flags = [standardPassword, digit, upper, lower, special]
    guard
      numbers.contains(where: { $0.number != nil }) || flags.contains(where: { $0 != nil })
        || lockTimeout != nil
    else { throw ValidationError("give at least one rule to change") }
    for (option, number, maximum) in numbers where !(0...maximum).contains(number ?? 0) {
      throw ValidationError("\(option) must be from 0 to \(maximum)")
    }
    if let timeout = lockTimeout?.duration,
      timeout > .seconds(365 * 86_400) || timeout.components.attoseconds != 0
    {
      throw ValidationError("--lock-timeout must be from 0s to 365d, in whole seconds")
    }
  }

  func apply(to policy: inout VaultPolicy) {
    func change<Value>(_ value: Value?, _ field: WritableKeyPath<VaultPolicy, Value>) {
      if let value { policy[keyPath: field] = value }
    }
    change(standardPassword, \.allowsStandardPassword)
    change(minimumLength, \.minimumLength)
    change(digit, \.requiresDigit)
    change(upper, \.requiresUpper)
    change(lower, \.requiresLower)
    change(special, \.requiresSpecial)
    change(minimumUniqueCharacters, \.minimumUniqueCharacters)
    change(expirationDays, \.expirationDays)
    change((lockTimeout?.duration.components.seconds).map(Int.init), \.lockTimeoutSeconds)
    change(retryLimit, \.retryLimit)
  }
}
