internal import ArgumentParser
internal import DataVault
internal import VaultedDatabase

/// `datavault lock VAULT`, `datavault lock --all`.
struct LockCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lock", abstract: "End what datavault unlock began.",
    discussion: """
      Within a second, programs that opened the vault through it have locked it. Those that were \
      given the password themselves are not concerned.
      """)

  @Argument(help: ArgumentHelp("The vault: a-z, 0-9, - and _.", valueName: "vault"))
  var vault: String?

  @Flag(help: "All vaults of this user, in all homes.") var all = false

  @OptionGroup var home: HomeOptions

  func validate() throws {
    guard (vault == nil) == all else { throw ValidationError("name a vault, or give --all") }
  }

  func run() async throws {
    guard let vault else {
      let count = try VaultSession.endAll()
      return try confirm("ended \(count) session\(count == 1 ? "" : "s")")
    }
    let id = try VaultID(vault)
    let store = try home.home().store
    if try await VaultSession.end(id, in: store) {
      return try confirm("locked vault \(id)")
    }
    // A session may outlive its vault, but no session of no vault is a slip of the fingers.
    _ = try await Vault.get(id, in: store)
    try confirm("vault \(id) has no session")
  }
}
