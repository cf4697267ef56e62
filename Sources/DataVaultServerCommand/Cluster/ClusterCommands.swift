internal import ApplicationStore
internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import FileLayer
internal import JetStreamLog
internal import MessagingQueue
internal import QueueReplication
internal import Replication
internal import SystemPackage
internal import VaultCrypto

/// The commands `datavaultd cluster ...`.
struct ClusterCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cluster",
    abstract: "Share one queue between several machines, over brokers of NATS JetStream.",
    discussion: """
      Example, the first home, then another one:
        datavaultd cluster provision --broker nats://10.0.0.1:4222 --broker nats://10.0.0.2:4222
        datavaultd cluster request > request.json
        datavaultd cluster invite request.json --fingerprint ... --copy copy.db > invitation
        datavaultd cluster join invitation --fingerprint ... --copy copy.db
      """,
    subcommands: [
      ClusterIdentityCommand.self, ClusterProvisionCommand.self, ClusterRequestCommand.self,
      ClusterInviteCommand.self, ClusterJoinCommand.self, ClusterStatusCommand.self,
      ClusterVerifyCommand.self, ClusterKeyCommand.self, ClusterRemoveCommand.self,
      ClusterLeaveCommand.self,
    ])
}

/// The command `datavaultd cluster identity`.
struct ClusterIdentityCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "identity", abstract: "Print what the brokers know this node by: its nkey.",
    discussion: "The first call makes the node's keys. They never leave its vault.")

  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let found = try await runMember(makesHome: true) { _, vault, _ in
      let keys = try await NodeVault(vault).keys()
      return try NodeReport(
        member: keys.member().hexadecimal, nkey: keys.userKey().publicKey.text)
    }
    try report.print(found) { "member  \(found.member)\nnkey    \(found.nkey)\n" }
  }
}

private struct NodeReport: Encodable {
  let member: String
  let nkey: String
}

/// The command `datavaultd cluster provision`.
struct ClusterProvisionCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "provision",
    abstract: "Make a stream at the brokers, and this home its first member.",
    discussion: """
      Stop the server first. Its messages, applications and consumers stay, and all later members get them. Leases end: \
      their messages are delivered again. The brokers must know the nkey that 'datavaultd cluster identity' prints, \
      unless --without-login is given.
      """)

  @Option(
    help: ArgumentHelp(
      "A broker: nats://HOST:PORT, or tls://HOST:PORT, which is never used without TLS. Can be repeated.",
      valueName: "url"))
  var broker: [String] = []

  @Option(help: ArgumentHelp("How many brokers keep the stream: 1, 3 or 5.", valueName: "n"))
  var replicas = 3

  @Option(
    help: ArgumentHelp(
      "The certificates of the authorities that the brokers are checked with, in PEM.",
      valueName: "file"), completion: .file())
  var authority: String?

  @Option(
    help: ArgumentHelp(
      "The longest that a broker keeps records without a sync: its sync_interval. 0s for 'always'.",
      valueName: "duration"))
  var syncInterval = DurationArgument(.seconds(300), "300s, that of NATS 2.9")

  @Flag(name: .customLong("without-login"), help: "Do not log in: the brokers let everyone in.")
  var isAnonymous = false

  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    guard !broker.isEmpty else { throw ValidationError("give at least one --broker") }
    guard [1, 3, 5].contains(replicas) else {
      throw ValidationError("--replicas must be 1, 3 or 5")
    }
    guard syncInterval.duration <= .seconds(86_400) else {
      throw ValidationError("--sync-interval must be at most 24h")
    }
  }

  func run() async throws {
    let member = try await runMember(makesHome: true, excludesServer: true) { engine, vault, _ in
      // The tables of applications are made before they are shared.
      _ = try await ApplicationStore.open(engine, vault: vault)
      let cluster = try await Membership.prepareFirst(engine, vault: vault, settings: settings())
      let keys = try await NodeVault(vault).keys()
      let log = try ClusterBrokers.log(cluster, keys, engine.configuration.logger)
      defer { log.close() }
      let replicas = replicas
      try await onBlockingThread("datavault.cluster") { try log.provision(replicas: replicas) }
      try await Membership.makeFirst(engine, vault: vault, shard: cluster.ring.shard)
      return try keys.member()
    }
    try confirm("made this home the first member, \(member.hexadecimal)")
  }

  private func settings() throws -> ClusterSettings {
    var settings = ClusterSettings(
      addresses: broker,
      authority: try authority.map {
        String(decoding: try contents(of: $0, "--authority", most: 64 << 10), as: UTF8.self)
      })
    settings.logsIn = !isAnonymous
    settings.syncSeconds = Int(syncInterval.duration.components.seconds)
    try BrokerSettings(addresses: settings.addresses, authority: settings.authority).check()
    return settings
  }
}

/// The command `datavaultd cluster request`.
struct ClusterRequestCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "request", abstract: "Print a request to join a cluster; it is not secret.",
    discussion: """
      Give the file to the operator of a member, and the fingerprint by another way, such as a voice: it says that \
      the file was not exchanged.
      """)

  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let request = try await runMember(makesHome: true) { _, vault, _ in
      let keys = try await NodeVault(vault).keys()
      return try JoinRequest(member: keys.member(), keys: keys)
    }
    try OutputDescriptor.standardOutput.writeAll(request.bytes)
    try StandardError.say("fingerprint of the request: \(request.fingerprint())")
  }
}

/// The command `datavaultd cluster invite REQUEST`.
struct ClusterInviteCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "invite",
    abstract: "Let another node join: print an invitation, and make a copy for it.",
    discussion: """
      The server of this home runs at the same time. The command waits until no broker can forget the new member: the \
      interval of their syncs. Neither file is secret: only the node of the request opens them. Give the fingerprint \
      of the invitation by another way than the files.
      """)

  @Argument(help: "The file of the request.", completion: .file()) var request: String

  @Option(help: "The fingerprint that the node of the request has shown.") var fingerprint: String

  @Option(
    help: ArgumentHelp(
      "Where the copy of the database is made; the path must be free.", valueName: "file"),
    completion: .file())
  var copy: String

  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let bytes = try contents(of: request, "REQUEST", most: JoinRequest.mostBytes)
    let confirmed = try fingerprint(fingerprint)
    let path = try FilePath.absolute(copy, "--copy")
    let invitation = try await runMember { engine, vault, home in
      let writer = try await OutboxWriter.attach(to: engine, of: home, vault: vault)
      return try await Membership.invite(
        bytes, confirmed: confirmed, by: writer, of: home, vault: vault,
        sharing: ApplicationKeys.itemName,
        copyingTo: path)
    }
    try OutputDescriptor.standardOutput.writeAll(invitation.bytes + [UInt8(ascii: "\n")])
    StandardError.say("fingerprint of the invitation: \(invitation.fingerprint)")
  }
}

/// The command `datavaultd cluster join INVITATION`.
struct ClusterJoinCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "join", abstract: "Make this home a member, with the invitation of another one.",
    discussion: """
      The home must be without messages. The vault must be the one in which 'datavaultd cluster request' was run. \
      Afterwards start the server, and remove the copy.
      """)

  @Argument(help: "The file of the invitation.", completion: .file()) var invitation: String

  @Option(help: "The fingerprint of the invitation that the member has shown.")
  var fingerprint: String

  @Option(
    help: ArgumentHelp("The copy of the member's database.", valueName: "file"), completion: .file()
  )
  var copy: String

  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let bytes = try contents(of: invitation, "INVITATION", most: Invitation.mostBytes)
    let confirmed = try fingerprint(fingerprint)
    let path = try FilePath.absolute(copy, "--copy")
    try await runMember(excludesServer: true) { engine, vault, _ in
      try await Membership.join(
        bytes, confirmed: confirmed, copy: path, engine, vault: vault,
        sharing: ApplicationKeys.itemName)
    }
    try confirm("joined the cluster; start the server, and remove \(path)")
  }
}

/// The command `datavaultd cluster remove MEMBER`.
struct ClusterRemoveCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Remove a member that does not come back, so that the log can be trimmed.",
    discussion: """
      Remove its nkey from the brokers too. A node that comes back after that joins again if the log still has what \
      it needs; otherwise it needs an invitation.
      """)

  @Argument(help: "The member's id, as 'datavaultd cluster status' prints it.") var member: String

  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    guard let member = MemberID(hexadecimal: member) else {
      throw CommandFailure(.usage, "a member's id has 32 lowercase hexadecimal digits")
    }
    try confirmation.require("remove member \(member.hexadecimal)")
    try await runMember { engine, vault, home in
      let writer = try await OutboxWriter.attach(to: engine, of: home, vault: vault)
      try await writer.removeMember(member)
    }
    try confirm("removed member \(member.hexadecimal)")
  }
}

/// The command `datavaultd cluster leave`.
struct ClusterLeaveCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "leave", abstract: "Make this home the only one again: all messages stay in it.",
    discussion: """
      Stop the server first. The other members go on without this one. Messages that were only in its outbox are \
      brought into the log before. With --without-brokers they become messages of this home alone, and no other member \
      learns that it left: use it when the brokers are gone for good.
      """)

  @Flag(name: .customLong("without-brokers"), help: "Leave although no broker answers.")
  var isAlone = false

  @Option(
    help: ArgumentHelp("How long it tries to tell the others.", valueName: "duration"))
  var within = DurationArgument(.seconds(60), "60s")

  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    try confirmation.require("leave the cluster")
    try await runMember(excludesServer: true) { engine, vault, home in
      if !isAlone, engine.isReplicated {
        let member = try await ClusterBrokers.node(
          home, engine, vault, logger: engine.configuration.logger)
        let running = Task { try await member.run() }
        defer { running.cancel() }
        try await member.node.leave(within: within.duration)
        running.cancel()
        _ = await running.result
      }
      try await MemberNode.leaveAlone(
        engine, of: home, vault: vault, serverTables: ApplicationStore.replicatedTables)
    }
    try confirm("left the cluster: this home is the only one again")
  }
}
