internal import ArgumentParser
internal import CommandInterface
internal import Glibc
internal import Logging
internal import MessagingQueue
internal import MessagingServer
internal import SystemPackage

/// What an operator sees of `datavaultd serve`: metrics, health and logs.
struct OperationsOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "An address for GET /metrics and /health: on this machine, or a Unix socket.",
      valueName: "address"))
  var operationsListen: ListenAddress?

  @Flag(
    name: .customLong("allow-remote-operations"),
    help: "Serve metrics on an address that other machines reach.")
  var allowsRemoteOperations = false

  @Option(
    help: ArgumentHelp(
      "Write a line of JSON for each request to a file; - is standard error. Default: the log, at the level debug.",
      valueName: "file"),
    completion: .file())
  var accessLog: String?

  @Option(
    help:
      "The form of the log: text, journal or json. Default: journal under systemd, otherwise text.")
  var logFormat: LogFormat?

  @Option(help: "The least level of the log: debug, info, notice, warning or error.")
  var logLevel = LeastLevel.info

  /// Sets logs and metrics, and returns what writes the log.
  func configure(_ configuration: inout ServerConfiguration) throws -> LineWriter {
    let standardError = LineWriter(.standardError)
    let format = logFormat ?? (JournalStream.isStandardError ? .journal : .text)
    let level = logLevel.level
    func logger(_ label: String) -> Logger {
      Logger(label: label) { LineLogHandler($0, format, logLevel: level, to: standardError) }
    }
    let registry = configuration.operationsListening.map { _ in PrometheusRegistry() }
    if let registry { configuration.engine.metricsFactory = registry }
    configuration.logger = logger("datavault.server")
    configuration.engine.logger = logger("datavault.engine")
    configuration.allowsRemoteOperations = allowsRemoteOperations
    configuration.operations = ServerOperations(
      registry: registry, accessLog: try requestLog(standardError), logger: configuration.logger,
      environment: ServiceManagerEnvironment.values)
    return standardError
  }

  private func requestLog(_ standardError: LineWriter) throws -> AccessLog? {
    guard let accessLog else { return nil }
    if accessLog == "-" { return AccessLog(standardError) }
    do {
      return AccessLog(try LineWriter(FilePath(accessLog), .json))
    } catch {
      throw CommandFailure(
        .inputOutput, "the access log \(accessLog) cannot be opened: \(error)",
        hint: "give a file in a directory that this user can write")
    }
  }
}

/// What the service manager says to its services in the environment.
enum ServiceManagerEnvironment {
  static var values: [String: String] {
    let names = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID", "WATCHDOG_USEC"]
    return Dictionary(
      uniqueKeysWithValues: names.compactMap { name in
        Environment[name].map { (name, $0) }
      })
  }
}

/// Whether standard error goes to journald: systemd.exec(5), `JOURNAL_STREAM`.
private enum JournalStream {
  static var isStandardError: Bool {
    var status = stat()
    guard let stream = Environment["JOURNAL_STREAM"],
      unsafe fstat(STDERR_FILENO, &status) == 0
    else { return false }
    return stream == "\(status.st_dev):\(status.st_ino)"
  }
}

extension LogFormat: ExpressibleByArgument {}

/// A level of the log, as the command line names it.
enum LeastLevel: String, ExpressibleByArgument, CaseIterable {
  case debug, info, notice, warning, error

  var level: Logger.Level {
    switch self {
    case .debug: .debug
    case .info: .info
    case .notice: .notice
    case .warning: .warning
    case .error: .error
    }
  }
}
