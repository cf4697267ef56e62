internal import ArgumentParser
internal import DataVault
internal import VaultedDatabase

/// `datavault list`.
struct ListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Name the vaults, one a line.")

  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions

  func run() async throws {
    let ids = try await Vault.list(in: home.home().store)
    try report.print(["vaults": ids.map(\.rawValue)]) {
      ids.map { "\($0)\n" }.joined()
    }
  }
}
