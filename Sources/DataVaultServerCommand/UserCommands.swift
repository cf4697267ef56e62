internal import AccessControl
internal import ApplicationStore
internal import ArgumentParser
internal import CommandInterface
internal import FileLayer
internal import Foundation

/// The commands `datavaultd user ...`.
struct UserCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "user", abstract: "Manage users, who log in with a password, and their roles.",
    discussion: """
      Example:
        datavaultd user add shop alice --role staff

      A running server takes each change within a second. With its first user, an application asks callers without \
      credentials for a password.
      """,
    subcommands: [UserAddCommand.self, UserListCommand.self, UserRemoveCommand.self])
}

/// The user that a command works on.
struct UserArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The user: 1 to 255 bytes without a colon or control characters.", valueName: "user"))
  var text: String

  /// - Throws: a failure for a name that no client can send.
  func name() throws -> Name { try Self.name(text) }

  static func name(_ text: String) throws -> Name {
    guard !text.utf8.contains(UInt8(ascii: ":")) else {
      throw CommandFailure(
        .usage, "the user '\(text)' has a colon",
        hint: "clients send USER:PASSWORD, so choose a name without one")
    }
    return try Name(text)
  }
}

/// The command `datavaultd user add APPLICATION USER`.
struct UserAddCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Add a user with a password.",
    discussion: """
      Examples:
        datavaultd user add shop alice --role staff --role buyers
        datavaultd user add shop alice --replace --user-password-file alice.password

      Without an option, the password is asked for at the terminal. It has 8 to 1024 bytes. The server keeps only a \
      verifier of it. With --replace, a user who is there gets this password and exactly these roles.
      """)

  @OptionGroup var application: ApplicationArgument
  @OptionGroup var user: UserArgument

  @Option(
    name: .customLong("role"),
    help: ArgumentHelp(
      "A role, whose grants the user has too. Can be repeated.", valueName: "role"))
  var roles: [String] = []

  @Flag(name: .customLong("replace"), help: "Give a user who is there a new password and roles.")
  var replaces = false

  @OptionGroup var password: UserPasswordOptions
  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws { try SecretRules.check(credentials.sources + password.sources) }

  func run() async throws {
    let name = try user.name()
    let roles = Set(try roles.map { try Name($0) })
    try await runStore { store in
      let record = try await store.application(named: application.name)
      let given = Password(try password.read(for: name.text))
      let realm = store.keys.realm
      let verifier = try await onBlockingThread("datavaultd.password") {
        try realm.verifier(for: given, user: name, of: record.id)
      }
      let added = try await store.put(
        user: name, verifier, roles: roles, of: record.id, replaces: replaces)
      try UsersReport(record, [added]).print(report)
    }
  }
}

/// The command `datavaultd user list APPLICATION`.
struct UserListCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the users of an application, with their roles.")

  @OptionGroup var application: ApplicationArgument
  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    try await runStore { store in
      let record = try await store.application(named: application.name)
      try await UsersReport(record, store.users(of: record.id)).print(report)
    }
  }
}

/// The command `datavaultd user remove APPLICATION USER`.
struct UserRemoveCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Remove a user, with the grants for that user.",
    discussion: """
      A running server refuses the user within a second, and ends what the user has open. The grants for roles stay.
      """)

  @OptionGroup var application: ApplicationArgument
  @OptionGroup var user: UserArgument
  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let name = try user.name()
    try confirmation.require("remove user '\(name)' of application '\(application.name)'")
    try await runStore { store in
      try await store.removeUser(
        name, of: store.application(named: application.name).id)
    }
    try confirm("removed user '\(name)' of application '\(application.name)'")
  }
}

/// The report of `user add` and `user list`.
private struct UsersReport: Encodable {
  struct Entry: Encodable {
    let user: String
    let roles: [String]
    let created: Date

    init(_ record: UserRecord) {
      user = record.name.text
      roles = record.roles.map(\.text).sorted()
      created = record.created
    }
  }

  let application: String
  let users: [Entry]

  init(_ record: ApplicationRecord, _ users: [UserRecord]) {
    application = record.name
    self.users = users.map { Entry($0) }
  }

  func print(_ options: ReportOptions) throws {
    try options.print(self) {
      table(
        ["USER", "ROLES", "CREATED"],
        users.map { user in
          [
            user.user, user.roles.isEmpty ? "-" : user.roles.joined(separator: ", "),
            user.created.formatted(.iso8601),
          ]
        })
    }
  }
}
