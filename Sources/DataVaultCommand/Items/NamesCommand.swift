internal import ArgumentParser
internal import DataVault

/// `datavault names VAULT`.
struct NamesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "names", abstract: "List the items of a vault with their kinds, not their values.")

  @OptionGroup var vault: VaultArgument
  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let access = VaultAccess(home: try home.home(), credentials: credentials)
    let names = try await access.open(vault.id()).itemNames()
    let items = names.map { ItemReport(name: $0.name, kind: $0.kind.rawValue) }
    try report.print(["items": items]) {
      items.map { "\($0.kind)\t\($0.name.onOneLine)\n" }.joined()
    }
  }
}

/// One line of the report.
private struct ItemReport: Encodable {
  let name: String
  let kind: String
}
