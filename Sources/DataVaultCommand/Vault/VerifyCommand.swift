internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import VaultedDatabase

/// The command `datavault verify VAULT`.
struct VerifyCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "verify", abstract: "Check a vault for damage.",
    discussion: """
      Examples:
        datavault verify messaging
        datavault verify messaging --password-file password.txt

      Without a password, the command checks the digest and the structure. This detects accidental \
      damage, not tampering. With a password, it checks that every byte is authentic and every \
      item readable. It asks for one only if an option says so.
      """)

  @OptionGroup var vault: VaultArgument
  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let id = try vault.id()
    var vault = try await Vault.get(id, in: home().store)
    let isSecured = try await vault.status().isSecured
    if credentials.areGiven || !isSecured {
      vault = try await open(id)
    }
    let report = VaultVerificationReport(id, try await vault.verify())
    try self.report.print(report) { report.text }
  }
}

/// The report of `verify`.
private struct VaultVerificationReport: Encodable {
  let vault: String
  let byteCount: Int
  /// Whether the vault was opened.
  ///
  /// An opened vault is authentic as a whole.
  let authentic: Bool
  let generation: Int?
  let items: Int?

  init(_ id: VaultID, _ verification: VaultVerification) {
    vault = id.rawValue
    byteCount = verification.byteCount
    authentic = verification.opened != nil
    generation = verification.opened?.generation
    items = verification.opened?.itemCount
  }

  var text: String {
    let contents =
      if let generation, let items {
        "authentic: \(items) items, written \(generation) times"
      } else {
        "not opened: give a password, for example with --password-file"
      }
    return """
      vault      \(vault)
      intact     yes: \(OutputDescriptor.size(byteCount: byteCount, unit: " bytes")), as they were written
      contents   \(contents)

      """
  }
}
