internal import ArgumentParser
internal import CommandInterface
internal import MessagingQueue

/// The command `datavault queue limit`.
struct LimitCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "limit", abstract: "Show or change the limit of the queue's size.",
    discussion: """
      Example:
        datavault queue limit set --bytes 10737418240

      A queue that has reached its limit refuses new messages, in every process (exit code 75). Receiving, settling \
      and purging continue, and make space. A new queue has no limit.
      """,
    subcommands: [LimitShowCommand.self, LimitSetCommand.self],
    defaultSubcommand: LimitShowCommand.self)
}

/// The command `datavault queue limit show`.
struct LimitShowCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Show the queue's size, its limit, and the free space of its disk.")

  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let size = try await runEngine { try await $0.databaseSize() }
    try report.print(SizeReport(size)) { SizeReport(size).text }
  }
}

/// The command `datavault queue limit set`.
struct LimitSetCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Change the limit of the queue's size.",
    discussion:
      "It applies immediately, also to running engines. It can be less than the present size.")

  @Option(
    help: ArgumentHelp(
      "The size of the database, without its log, from which new messages are refused; 'none' for no limit.",
      valueName: "n"))
  var bytes: LimitArgument<Int>

  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    try await runEngine { try await $0.setMaximumDatabaseByteCount(bytes.limit) }
    try confirm("changed the limit of the queue")
  }
}

/// The report of `queue limit show`, and a part of that of `queue stats`.
///
/// A limit that is not set is absent.
struct SizeReport: Encodable {
  let databaseBytes: Int
  let maximumDatabaseBytes: Int?
  let freeDiskBytes: Int

  init(_ size: DatabaseSize) {
    databaseBytes = size.byteCount
    maximumDatabaseBytes = size.maximumByteCount
    freeDiskBytes = size.freeDiskByteCount
  }

  var text: String {
    func size(_ byteCount: Int) -> String {
      OutputDescriptor.size(byteCount: byteCount, unit: " bytes")
    }
    return """
      database   \(size(databaseBytes))
      limit      \(maximumDatabaseBytes.map(size) ?? "none")
      disk       \(size(freeDiskBytes)) free\n
      """
  }
}
