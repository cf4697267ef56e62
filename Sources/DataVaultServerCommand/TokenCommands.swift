internal import AccessControl
internal import ApplicationStore
internal import ArgumentParser
internal import CommandInterface
internal import Foundation
internal import StrictJSON
internal import SystemPackage
internal import VaultedDatabase

/// The commands `datavaultd token ...`.
struct TokenCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "token", abstract: "Make and revoke tokens, which carry the rights of a client.",
    discussion: """
      Example:
        datavaultd token grant shop --channel orders --read --ttl 60 --uuid alice
      """,
    subcommands: [TokenGrantCommand.self, TokenRevokeCommand.self])
}

/// The command `datavaultd token grant APPLICATION`.
struct TokenGrantCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "grant", abstract: "Make a token, and print it.",
    discussion: """
      Examples:
        datavaultd token grant shop --channel orders --read --write --ttl 60
        datavaultd token grant shop --channel-pattern '^news' --read --ttl 60

      Each holder of the token has its rights: write it to a file that only its owner can read. The server keeps no \
      copy. All names of a token get the same rights. A pattern is a regular expression, searched for anywhere in a name.
      """)

  @OptionGroup var application: ApplicationArgument

  @Option(
    name: .customLong("channel"),
    help: ArgumentHelp("A channel. Can be repeated.", valueName: "channel"))
  var channels: [String] = []

  @Option(
    name: .customLong("channel-pattern"),
    help: ArgumentHelp("A pattern of channels. Can be repeated.", valueName: "pattern"))
  var channelPatterns: [String] = []

  @Option(
    name: .customLong("group"),
    help: ArgumentHelp("A channel group. Can be repeated.", valueName: "group"))
  var groups: [String] = []

  @Option(
    name: .customLong("group-pattern"),
    help: ArgumentHelp("A pattern of channel groups. Can be repeated.", valueName: "pattern"))
  var groupPatterns: [String] = []

  @OptionGroup var rights: RightsOptions

  @Option(
    name: .customLong("ttl"),
    help: ArgumentHelp("The lifetime in minutes: 1 to 43200.", valueName: "minutes"))
  var minutes: Int

  @Option(
    help: ArgumentHelp(
      "The only user id with which the token is valid. Default: any.", valueName: "user"))
  var uuid: String?

  @Option(
    help: ArgumentHelp(
      "Put the JSON object of a file into the token, for the application.", valueName: "file"),
    completion: .file())
  var metaFile: String?

  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    guard ![channels, channelPatterns, groups, groupPatterns].allSatisfy(\.isEmpty) else {
      throw ValidationError(
        "give at least one of --channel, --channel-pattern, --group and --group-pattern")
    }
  }

  func run() async throws {
    for name in channels { _ = try ChannelName(name) }
    for name in groups { _ = try GroupName(name) }
    if let uuid { _ = try Name(uuid) }
    func entries(_ names: [String]) -> [TokenRights.Entry] {
      names.map { TokenRights.Entry($0, rights.rights) }
    }
    let contents = try TokenContents(
      issue: Date(), minutes: minutes,
      resources: TokenRights(channels: entries(channels), groups: entries(groups)),
      patterns: TokenRights(channels: entries(channelPatterns), groups: entries(groupPatterns)),
      meta: metaFile.map { try Self.meta($0) } ?? [], authorizedUserID: uuid)
    let token = try await runStore { store in
      let record = try await store.application(named: application.name)
      return try await store.signer(of: record.id).issue(contents)
    }
    let found = TokenReport(application: application.name, token: token, until: contents.end)
    try report.print(found) { "\(token)\n" }
  }

  private static func meta(_ path: String) throws -> [JSONMember] {
    let limit = GrantTokenRequest.maximumByteCount
    let bytes: Data
    do {
      let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
      bytes = try file.read(upToCount: limit + 1) ?? Data()
    } catch {
      throw CommandFailure(.notFound, "\(path) cannot be read", hint: "check --meta-file")
    }
    guard bytes.count <= limit else {
      throw CommandFailure(
        .badData, "\(path) has more than \(limit) bytes", hint: "--meta-file needs a smaller object"
      )
    }
    do {
      return try JSONReader.object([UInt8](bytes))
    } catch {
      throw CommandFailure(.badData, "\(path) \(error)", hint: "--meta-file needs a JSON object")
    }
  }
}

/// The report of `token grant`.
private struct TokenReport: Encodable {
  let application: String
  let token: String
  let until: Date
}

/// The command `datavaultd token revoke`.
struct TokenRevokeCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "revoke", abstract: "Revoke a token before its end.",
    discussion: """
      Example:
        datavaultd token revoke --token-file token.txt

      The token names its application. A running server refuses the token within a second.
      """)

  @OptionGroup var token: TokenOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    guard token.areGiven else {
      throw ValidationError("give one of --token-file, --token-fd and --token-prompt")
    }
    try SecretRules.check(credentials.sources + token.sources)
  }

  func run() async throws {
    let text = try token.read(for: ("home", home().path.string)) ?? []
    let name = try await runStore { store in
      let (token, name) = try await Self.find(text, in: store)
      try await store.revoke(token.digest, of: token.application, until: token.end)
      return name
    }
    try confirm("revoked a token of application '\(name)'")
  }

  /// The token that a text is, and the name of the application that signed it.
  private static func find(
    _ text: [UInt8], in store: ApplicationStore
  ) async throws -> (Token, String) {
    var isToken = false
    for record in try await store.applications() {
      switch try await store.signer(of: record.id).read(text) {
      case .token(let token): return (token, record.name)
      case .forged: isToken = true
      case .other: break
      }
    }
    guard isToken else { throw TokenOptions.isNoToken }
    throw CommandFailure(
      .notFound, "no application of this home signed the token",
      hint: "datavaultd app list shows the applications: check --home")
  }
}
