internal import AccessControl
internal import ApplicationStore
internal import ArgumentParser
internal import CommandInterface
internal import Foundation

/// The command `datavaultd explain APPLICATION OPERATION`.
struct ExplainCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "explain", abstract: "Say whether a caller can do something now, and why.",
    discussion: """
      Examples:
        datavaultd explain shop publish orders --auth-key-file key.txt
        datavaultd explain shop subscribe orders --user alice
        datavaultd explain shop subscribe --group staff --token-file token.txt --uuid alice

      Without a credential, the caller is anyone who knows the application's public keys. The exit code is 0 if the \
      operation is allowed, and 78 if it is refused.

      The operations are \(OperationArgument.allNames.joined(separator: ", ")).
      """)

  @OptionGroup var application: ApplicationArgument

  @Argument(
    help: ArgumentHelp(
      "What the caller wants to do, such as publish.", valueName: "operation"),
    completion: .list(OperationArgument.allNames))
  var operationArgument: OperationArgument

  @Argument(
    help: ArgumentHelp(
      "The channel, or the channel group for operations that work on groups alone.",
      valueName: "name"))
  var name: String?

  @Option(help: ArgumentHelp("A channel group, in place of a channel.", valueName: "group"))
  var group: String?

  @Option(help: ArgumentHelp("A consumer of the channel.", valueName: "name"))
  var consumer: String?

  @OptionGroup var authKey: AuthKeyOptions
  @OptionGroup var token: TokenOptions

  @Option(help: ArgumentHelp("The user id that the caller sends with a token.", valueName: "user"))
  var uuid: String?

  @Option(help: ArgumentHelp("A user who has logged in.", valueName: "user"))
  var user: String?

  @Flag(name: .customLong("signed"), help: "The request is signed with the secret key.")
  var isSigned = false

  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    guard [authKey.areGiven, token.areGiven, user != nil, isSigned].count(where: { $0 }) <= 1
    else {
      throw ValidationError("give only one of an auth key, a token, --user and --signed")
    }
    guard uuid == nil || token.areGiven else { throw ValidationError("--uuid needs a token") }
    guard name == nil || group == nil else {
      throw ValidationError("give only one of a name and --group")
    }
    guard consumer == nil || name != nil else {
      throw ValidationError("--consumer needs the name of its channel")
    }
    try SecretRules.check(credentials.sources + authKey.sources + token.sources)
  }

  func run() async throws {
    let scope = try scope()
    let (decision, sentence) = try await runStore { store in
      let record = try await store.application(named: application.name)
      let resource = Resource(scope, of: record.id)
      let decision: Decision =
        if let principal = try await principal(in: store, of: record) {
          try await ApplicationDirectory.load(store)
            .decide(principal, operation, resource, at: Date())
        } else {
          .refused(.otherApplication)
        }
      return (decision, decision.explanation(of: operation, on: resource))
    }
    let found = ExplanationReport(
      allowed: decision.isAllowed, reason: decision.ground(of: operation, on: scope),
      until: decision.end)
    try report.print(found) { "\(sentence)\n" }
    if !decision.isAllowed { throw ExitCode(ExitStatus.policy.rawValue) }
  }

  private var operation: AccessOperation { operationArgument.operation }

  /// What the operation works on.
  private func scope() throws -> Scope {
    if let group { return .group(try GroupName(group)) }
    if let name {
      let channel = Scope.channel(try ChannelName(name))
      if let consumer { return .consumer(try Name(consumer), of: try ChannelName(name)) }
      let asGroup = Scope.group(try GroupName(name))
      return !operation.applies(to: channel) && operation.applies(to: asGroup) ? asGroup : channel
    }
    if operation == .listGroups { return .group(.all) }
    guard operation.applies(to: .application) else {
      throw CommandFailure(
        .usage, "operation '\(operation.rawValue)' needs a channel or a group",
        hint: "give its name, or --group")
    }
    return .application
  }

  /// Who asks, as the server would find out; nil for a token that the application did not sign.
  private func principal(
    in store: ApplicationStore, of record: ApplicationRecord
  ) async throws -> Principal? {
    if isSigned { return .signed(record.id) }
    if let user { return .user(try Name(user)) }
    if let hash = try await authKey.hash(in: store, of: record) { return .authKey(hash) }
    guard let text = try token.read(for: ("application", record.name)) else { return .anonymous }
    return switch try await store.signer(of: record.id).read(text) {
    case .token(let token): .token(token, userID: uuid)
    case .forged: nil
    case .other: throw TokenOptions.isNoToken
    }
  }
}

/// The report of `explain`.
private struct ExplanationReport: Encodable {
  let allowed: Bool
  let reason: String
  /// Absent for a refusal, and where no end is known.
  let until: Date?
}

/// The name of an operation as an argument: `message-counts`.
struct OperationArgument: ExpressibleByArgument {
  let operation: AccessOperation

  static let allNames = AccessOperation.allCases.map(name)

  /// Takes a name with hyphens or with spaces; nil for any other text.
  init?(argument: String) {
    let name = argument.replacing(" ", with: "-")
    guard let found = AccessOperation.allCases.first(where: { Self.name($0) == name }) else {
      return nil
    }
    operation = found
  }

  static func name(_ operation: AccessOperation) -> String {
    operation.rawValue.replacing(" ", with: "-")
  }
}
