internal import ArgumentParser
internal import DataVault
internal import VaultedDatabase

/// `datavault slots list VAULT`.
struct SlotsListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List what opens a vault, without opening it.")

  @OptionGroup var vault: VaultArgument
  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions

  func run() async throws {
    let vault = try await Vault.get(vault.id(), in: home.home().store)
    let slots = try await vault.status().slots
    try report.print(SlotsReport(vault.id, slots)) {
      var table = Table(header: ["SLOT", "ITERATIONS"])
      for slot in slots {
        table.append([slot.identifier, slot.iterationCount.map(String.init) ?? "-"])
      }
      return table.text
    }
  }
}

/// The report of `slots list` as JSON.
private struct SlotsReport: Encodable {
  struct Slot: Encodable {
    let slot: String
    let kind: String
    /// Absent for a password.
    let name: String?
    /// Present for a password.
    let iterationCount: Int?
  }

  let vault: String
  let slots: [Slot]

  init(_ id: VaultID, _ slots: [VaultStatus.Slot]) {
    vault = id.rawValue
    self.slots = slots.map {
      Slot(
        slot: $0.identifier, kind: $0.kind.rawValue, name: $0.name,
        iterationCount: $0.iterationCount)
    }
  }
}
