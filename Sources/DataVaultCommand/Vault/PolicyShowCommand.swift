internal import ArgumentParser
internal import DataVault
internal import VaultedDatabase

/// `datavault policy show VAULT`.
struct PolicyShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show a vault's policy.")

  @OptionGroup var vault: VaultArgument
  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let vault = try await VaultAccess(home: home.home(), credentials: credentials).open(vault.id())
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
    func word(_ isDemanded: Bool) -> String { isDemanded ? "yes" : "no" }
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
      lock timeout        \(count(lockTimeoutSeconds, "s"))
      retry limit         \(retryLimit > 0 ? "\(retryLimit) wrong attempts, the next deletes the vault" : "none")\n
      """
  }
}
