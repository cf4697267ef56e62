internal import ArgumentParser
internal import DataVault
internal import MessagingQueue
internal import VaultedDatabase

/// The command `datavault queue purge CHANNEL`.
struct PurgeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "purge",
    abstract: "Delete a channel's messages, including unreceived ones.")

  @Argument(help: "The channel.", completion: Completion.channels) var channel: String

  @Option(help: ArgumentHelp("Keep this message and all later ones.", valueName: "timetoken"))
  var before: Timetoken?

  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var access: AccessOptions

  func run() async throws {
    let channel = try Channel(channel)
    try confirmation.require("delete the messages of channel '\(channel.name)'")
    let count = try await access.runEngine {
      try await $0.purge(channel, before: before)
    }
    try confirm("deleted \(count) messages")
  }
}

/// The command `datavault queue compact`.
struct CompactCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compact", abstract: "Return the space of deleted messages to the file system.",
    discussion: "Other processes can publish and receive while the command runs.")

  @OptionGroup var access: AccessOptions

  func run() async throws {
    let byteCount = try await access.runEngine { try await $0.compact() }
    try confirm("returned \(byteCount) bytes to the file system")
  }
}

/// The command `datavault queue rekey`.
struct RekeyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rekey", abstract: "Re-encrypt the queue with a new key.",
    discussion: """
      The vault creates and stores the key. The password stays the same. The command fails with \
      75 while another process has the queue open: stop that process first. Until the command \
      ends, no other process can open the queue. If the command is interrupted, the next opening \
      completes the change.
      """)

  @OptionGroup var access: AccessOptions

  func run() async throws {
    let vault = try await access.open(.messaging)
    let line = ProgressLine("re-encrypting")
    defer { line.clear() }
    try await DatabaseCoordinator(home: access.home()).changeKey(
      of: vault, anchorStorage: EngineAnchorStorage()
    ) { line.show($0) }
    try confirm("re-encrypted the queue with a new key")
  }
}
