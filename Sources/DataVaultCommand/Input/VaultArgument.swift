internal import ArgumentParser
internal import CommandInterface
internal import DataVault

/// The argument `VAULT`.
struct VaultArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The vault's id: 1 to 64 characters of a-z, 0-9, - and _.", valueName: "vault"),
    completion: Completion.vaults)
  var text: String

  func id() throws(VaultError) -> VaultID {
    try VaultID(text)
  }
}
