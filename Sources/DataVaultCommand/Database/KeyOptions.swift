internal import ArgumentParser

/// Where the key comes from that opens a database file.
struct KeyOptions: ParsableArguments {
  @Option(
    name: .customLong("key-file"),
    help: ArgumentHelp("Read the key from a file, all of it.", valueName: "file"))
  var file: String?

  @Option(
    name: .customLong("key-fd"),
    help: ArgumentHelp("Read the key from an open file descriptor.", valueName: "n"))
  var descriptor: Int32?

  @Option(
    name: .customLong("key-item"),
    help: ArgumentHelp("Take the key from an item of a vault.", valueName: "vault/name"))
  var item: String?

  var choice: KeyChoice {
    KeyChoice(prefix: "", file: file, descriptor: descriptor, item: item)
  }

  func validate() throws { try choice.validate() }
}

/// Where the key comes from that a new database file gets.
struct NewKeyOptions: ParsableArguments {
  @Option(
    name: .customLong("new-key-file"),
    help: ArgumentHelp("Read the new file's key from a file, all of it.", valueName: "file"))
  var file: String?

  @Option(
    name: .customLong("new-key-fd"),
    help: ArgumentHelp("Read the new file's key from an open file descriptor.", valueName: "n"))
  var descriptor: Int32?

  @Option(
    name: .customLong("new-key-item"),
    help: ArgumentHelp("Take the new file's key from an item of a vault.", valueName: "vault/name"))
  var item: String?

  var choice: KeyChoice {
    KeyChoice(prefix: "new-", file: file, descriptor: descriptor, item: item)
  }

  func validate() throws { try choice.validate() }
}
