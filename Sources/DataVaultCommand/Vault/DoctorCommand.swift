internal import ArgumentParser
internal import DataVault
internal import MessagingQueue
internal import VaultCrypto
internal import VaultedDatabase

/// `datavault doctor`.
struct DoctorCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor", abstract: "Look for what is not as it should be, each with its fix.",
    discussion: """
      It asks for no password and changes nothing. Whether the messages were rolled back it tells only where their vault \
      opens: by a session, or by what an option names. What keeps vaults or messages from being used ends it \
      with the exit code that using them would have; all else is a warning, and ends it with 0.
      """)

  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let home = try home.home()
    let vaults = await VaultDoctor.examine(home.store)
    _ = LockedMemory.takeWarning()  // it is among the findings
    let files = await HomeDoctor.examine(home)
    var findings = vaults.map(FindingReport.init) + files.map(FindingReport.init)
    var refusal: (any Error)?
    if !findings.contains(where: { !$0.isWarning }) {
      do {
        findings += try await age(of: home).map(FindingReport.init)
      } catch {
        refusal = error  // a wrong password: what was found is said first
      }
    }
    try report.print(["findings": findings]) {
      findings.isEmpty ? "nothing found\n" : findings.map(\.text).joined()
    }
    if let refusal { throw refusal }
    if let status = findings.lazy.compactMap(\.status).first {
      throw CommandFailure(
        status, "vaults or messages cannot be used as they are",
        hint: "the fixes stand on standard output")
    }
  }

  /// Whether the messages were rolled back, as far as that can be told without a question.
  private func age(of home: DataVaultHome) async throws -> [HomeFinding] {
    let status = try? await Vault.get(.messaging, in: home.store).status()
    guard let status, status.binding?.state == .bound else { return [] }
    let vault: Vault
    if credentials.areGiven {
      vault = try await VaultAccess(home: home, credentials: credentials).open(.messaging)
    } else {
      vault = try await Vault.get(.messaging, in: home.store)
      // With the publicly known password anybody could have made the older copy fit.
      guard status.isSecured else { return [] }
      guard (try? await vault.unlockWithSession()) == true else {
        return [
          .rollbackNotChecked(
            "the messaging vault is locked",
            fix: "begin a session (`datavault unlock messaging`), or give --password-file FILE")
        ]
      }
    }
    return await MessagingEngine.examineAge(of: home, vault: vault)
  }
}

/// A finding in the report of `doctor`.
private struct FindingReport: Encodable {
  let kind: String
  let vault: String?
  let isWarning: Bool
  let message: String
  let fix: String
  /// How the command ends because of it; nil for a warning.
  let status: ExitStatus?

  init(_ finding: VaultFinding) {
    kind = finding.kind.description
    vault = finding.vaultID?.rawValue
    status = finding.error.map { CommandFailure.status(of: $0) }
    isWarning = status == nil
    message = finding.message
    fix = finding.fix
  }

  init(_ finding: HomeFinding) {
    kind = finding.kind
    vault = nil
    status = finding.error.map { CommandFailure(translating: $0).status }
    isWarning = status == nil
    message = finding.message
    fix = finding.fix
  }

  private enum CodingKeys: CodingKey { case kind, vault, isWarning, message, fix }

  var text: String {
    "\(isWarning ? "warning" : "error"): \(message.onOneLine)\n  fix: \(fix.onOneLine)\n"
  }
}
