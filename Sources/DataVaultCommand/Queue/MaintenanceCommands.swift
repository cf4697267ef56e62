internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import MessagingQueue
internal import VaultedDatabase

/// The command `datavault queue purge CHANNEL`.
struct PurgeCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "purge",
    abstract: "Delete a channel's messages, including unreceived ones.")

  @Argument(help: "The channel.", completion: Completion.channels) var channel: String

  @Option(help: ArgumentHelp("Keep this message and all later ones.", valueName: "timetoken"))
  var before: Timetoken?

  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let channel = try Channel(channel)
    try confirmation.require("delete the messages of channel '\(channel.name)'")
    let line = ProgressLine("deleting", unit: .messages)
    defer { line.clear() }
    let count = try await runEngine(changes: true) { engine in
      let total = before == nil ? try await engine.statistics(of: channel)?.messageCount : nil
      return try await engine.purge(channel, before: before) { line.show($0, of: total) }
    }
    line.clear()
    try confirm("deleted \(count) messages")
  }
}

/// The command `datavault queue compact`.
struct CompactCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "compact", abstract: "Return the space of deleted messages to the file system.",
    discussion: """
      The command also makes the reserve, if the disk has space for it. Other processes can publish and receive while \
      it runs.
      """)

  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let line = ProgressLine("compacting", unit: .bytes)
    defer { line.clear() }
    let byteCount = try await runEngine { engine in
      try await engine.compact { line.show($0) }
    }
    line.clear()
    try confirm("returned \(PeopleText.size(byteCount: byteCount)) to the file system")
  }
}

/// The command `datavault queue rekey`.
struct RekeyCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "rekey", abstract: "Re-encrypt the queue with a new key.",
    discussion: """
      The vault creates and stores the key. The password stays the same. The command fails with \
      75 while another process has the queue open: stop that process first. Until the command \
      ends, no other process can open the queue. If the command is interrupted, the next opening \
      completes the change.
      """)

  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let vault = try await open(.messaging)
    let line = ProgressLine("re-encrypting")
    defer { line.clear() }
    try await DatabaseCoordinator(home: home()).changeKey(
      of: vault, anchorStorage: EngineAnchorStorage()
    ) { line.show($0) }
    try confirm("re-encrypted the queue with a new key")
  }
}
