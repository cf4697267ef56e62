internal import ApplicationStore
internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import MessagingQueue
internal import QueueReplication
internal import Replication

/// The commands `datavaultd cluster key ...`.
struct ClusterKeyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "key", abstract: "Change the key under which the members seal what they write.",
    discussion: """
      Example, on one member, then on each other one, then on any:
        datavaultd cluster key add
        datavaultd cluster key hand-on request.json --fingerprint ... > keys
        datavaultd cluster key take keys --fingerprint ...
        datavaultd cluster key switch 2
        datavaultd cluster key drop 2
      """,
    subcommands: [
      ClusterKeyAddCommand.self, ClusterKeyHandOnCommand.self, ClusterKeyTakeCommand.self,
      ClusterKeySwitchCommand.self, ClusterKeyDropCommand.self,
    ])
}

/// The command `datavaultd cluster key add`.
struct ClusterKeyAddCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Add a random key to this home's ring, and print its number.",
    discussion: "Restart the server, and hand the ring on to all other members.")

  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let number = try await runMember { _, vault, _ in try await NodeVault(vault).addKey() }
    try OutputDescriptor.standardOutput.writeAll(Array("\(number)\n".utf8))
  }
}

/// The command `datavaultd cluster key hand-on REQUEST`.
struct ClusterKeyHandOnCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "hand-on", abstract: "Print the ring, encrypted for the node of a request.",
    discussion: """
      The request is what 'datavaultd cluster request' prints on the other member. Give the fingerprint of the output \
      by another way than the file.
      """)

  @Argument(help: "The file of the request.", completion: .file()) var request: String

  @Option(help: "The fingerprint that the node of the request has shown.") var fingerprint: String

  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let bytes = try contents(of: request, "REQUEST", most: JoinRequest.mostBytes)
    let confirmed = try fingerprint(fingerprint)
    let invitation = try await runMember { _, vault, _ in
      try await Membership.handOn(
        to: bytes, confirmed: confirmed, vault: vault, sharing: ApplicationKeys.itemName)
    }
    try OutputDescriptor.standardOutput.writeAll(invitation.bytes + [UInt8(ascii: "\n")])
    StandardError.say("fingerprint of the keys: \(invitation.fingerprint)")
  }
}

/// The command `datavaultd cluster key take FILE`.
struct ClusterKeyTakeCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "take", abstract: "Add the newer keys of another member to this home's ring.",
    discussion: "Restart the server: then it says to the others that it has the new key.")

  @Argument(help: "The file that 'hand-on' printed.", completion: .file()) var file: String

  @Option(help: "The fingerprint of the keys that the member has shown.") var fingerprint: String

  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let bytes = try contents(of: file, "FILE", most: Invitation.mostBytes)
    let confirmed = try fingerprint(fingerprint)
    try await runMember { _, vault, _ in
      try await Membership.takeKeys(of: bytes, confirmed: confirmed, vault: vault)
    }
    try confirm("took the keys; restart the server")
  }
}

/// The command `datavaultd cluster key switch NUMBER`.
struct ClusterKeySwitchCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "switch", abstract: "Let all members seal under a key that all of them have.")

  @Argument(help: "The number of the key.") var number: UInt32

  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let number = number
    try await runMember { engine, vault, home in
      let writer = try await OutboxWriter.attach(to: engine, of: home, vault: vault)
      try await writer.switchKey(to: number)
    }
    try confirm("new records are sealed under key \(number)")
  }
}

/// The command `datavaultd cluster key drop NUMBER`.
struct ClusterKeyDropCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "drop", abstract: "Let all members skip records under keys before this one.",
    discussion: """
      It needs that no member has such a record in its outbox, or could still undo one. Each node removes the old keys \
      from its ring when its server starts.
      """)

  @Argument(help: "The number of the oldest key that stays.") var number: UInt32

  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let number = number
    try await runMember { engine, vault, home in
      let writer = try await OutboxWriter.attach(to: engine, of: home, vault: vault)
      try await writer.dropKeys(before: number)
    }
    try confirm("records under keys before \(number) are skipped")
  }
}
