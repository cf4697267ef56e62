internal import ArgumentParser

/// The `VAULT NAME` of the item commands.
struct ItemArguments: ParsableArguments {
  @OptionGroup var vault: VaultArgument

  @Argument(help: ArgumentHelp("The item: 1 to 255 bytes.", valueName: "name"))
  var name: String
}
