internal import ArgumentParser
internal import DataVault

/// The `VAULT` of a command line.
struct VaultArgument: ParsableArguments {
  @Argument(help: ArgumentHelp("The vault: a-z, 0-9, - and _.", valueName: "vault"))
  var text: String

  func id() throws(VaultError) -> VaultID {
    try VaultID(text)
  }
}
