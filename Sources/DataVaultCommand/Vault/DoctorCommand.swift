internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import MessagingQueue
internal import VaultCrypto
internal import VaultedDatabase

/// The command `datavault doctor`.
struct DoctorCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "doctor", abstract: "Diagnose problems and suggest fixes.",
    discussion: """
      Example:
        datavault doctor --password-file password.txt

      The command repairs nothing, and asks for a password only if an option says so. It checks whether the queue was \
      rolled back or nearly reaches its limit only if it can open the messaging vault: through a session, or with an \
      unlocking option.

      An error makes vaults or the queue unusable. The exit code is then the one that using them \
      would have. If there are only warnings, the exit code is 0.
      """)

  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let home = try home()
    let vaults = await VaultDoctor.examine(home.store)
    _ = LockedMemory.takeWarning()  // the findings include it
    let files = HomeDoctor.examineFiles(of: home) + QueueDoctor.examineDisk(of: home)
    var findings = vaults.map(FindingReport.init) + files.map(FindingReport.init)
    var queue = await HomeDoctor.examineBinding(of: home).map(FindingReport.init)
    var failure: (any Error)?
    if findings.contains(where: \.isObstacle) {
      let note = HomeFinding.rollbackNotChecked(
        "the errors above prevent it", fix: "apply their fixes, and run the doctor again")
      queue.append(FindingReport(note))
    } else {
      do {
        queue = try await queueFindings(in: home, binding: queue)
      } catch {
        failure = error  // such as a wrong password: the findings are printed first
      }
    }
    findings += queue
    try report.print(["findings": findings]) {
      (failure == nil && findings.allSatisfy(\.isNote) ? "no problems found\n" : "")
        + findings.map(\.text).joined()
    }
    if let failure { throw failure }
    if let exitStatus = findings.lazy.compactMap(\.exitStatus).first {
      throw CommandFailure(
        exitStatus, "the doctor found errors in home \(home.path)",
        hint: "apply the fixes that are printed to standard output")
    }
  }

  /// What keeps an engine from starting: the vault, or its database.
  ///
  /// - Parameter binding: what is found while the vault is locked.
  private func queueFindings(
    in home: DataVaultHome, binding: [FindingReport]
  ) async throws -> [FindingReport] {
    if !binding.contains(where: \.isObstacle),
      let refusal = try await MessagingEngine.refusal(
        toStartIn: home, requiresSecuredVault: try credentials.requiresSecuredVault())
    {
      return [FindingReport(refusal)]
    }
    let status = try? await Vault.get(.messaging, in: home.store).status()
    guard let status else { return binding }
    let isBound = status.binding?.state == .bound
    var vault = try await Vault.get(.messaging, in: home.store)
    if credentials.areGiven {
      vault = try await open(.messaging)
    } else if !status.isSecured {
      try await vault.unlock(with: .standard)
    } else if try await !opensWithSession(vault) {
      guard isBound else { return binding }
      let note = HomeFinding.rollbackNotChecked(
        "the messaging vault is locked",
        fix: "start a session (`datavault unlock messaging`), or give --password-file FILE")
      return binding + [FindingReport(note)]
    }
    guard isBound else { return binding }
    // With the key it says more than the binding.
    return await QueueDoctor.examineDatabase(of: home, vault: vault).map(FindingReport.init)
  }

  /// Another command asks for a password where the session does not open the vault, but not where
  /// the vault is damaged.
  private func opensWithSession(_ vault: Vault) async throws -> Bool {
    do {
      return try await vault.unlockWithSession()
    } catch  where error.code != .damaged {
      return false
    }
  }
}

/// A finding in the report of `doctor`.
private struct FindingReport: Encodable {
  let kind: String
  let vault: String?
  let isWarning: Bool
  let message: String
  let fix: String
  /// The exit code that the finding causes; nil for a warning.
  let exitStatus: ExitStatus?

  init(_ finding: VaultFinding) {
    kind = finding.kind
    vault = finding.vaultID?.rawValue
    exitStatus = finding.error.flatMap { VaultError.exitCodes[$0] ?? nil }
    isWarning = exitStatus == nil
    message = finding.message
    fix = finding.fix
  }

  init(_ finding: HomeFinding) {
    kind = finding.kind
    vault = nil
    exitStatus = finding.error?.exitStatus
    isWarning = exitStatus == nil
    message = finding.message
    fix = finding.fix
  }

  init(_ refusal: EngineError) {
    kind = refusal.code.description
    vault = nil
    exitStatus = refusal.exitStatus
    isWarning = false
    message = refusal.message
    fix = refusal.hint ?? "see the message"
  }

  private enum CodingKeys: CodingKey { case kind, vault, isWarning, message, fix }

  /// Whether it keeps the messaging vault from being opened, as an error of another vault does not.
  var isObstacle: Bool { !isWarning && (vault == nil || vault == VaultID.messaging.rawValue) }

  /// Whether it says what was not checked, and not what is wrong.
  var isNote: Bool { kind == HomeFinding.rollbackNotCheckedKind }

  var text: String {
    let word = isNote ? "note" : isWarning ? "warning" : "error"
    return "\(word): \(message.onOneLine)\n  fix: \(fix.onOneLine)\n"
  }
}
