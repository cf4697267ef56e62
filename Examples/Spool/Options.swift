internal import ArgumentParser
internal import DataVault
internal import Foundation
internal import MessagingQueueLifecycle
internal import SystemPackage

/// The options and arguments of the daemon.
struct Options: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The directory of the vault and the queue. Default: $STATE_DIRECTORY.", valueName: "dir"))
  var home = environment("STATE_DIRECTORY") ?? ""

  @Option(help: "The socket to listen on. Default: ingest.sock in $RUNTIME_DIRECTORY.")
  var socket = environment("RUNTIME_DIRECTORY").map { $0 + "/ingest.sock" } ?? ""

  @Option(help: "The channel of the messages.")
  var channel = "spool"

  @Option(help: "The systemd credential with the vault's password. It is optional.")
  var credential = "messaging-password"

  @Option(
    name: .customLong("workers"),
    help: ArgumentHelp("How many commands run concurrently.", valueName: "n"))
  var workerCount = 4

  @Option(
    name: .customLong("attempts"),
    help: ArgumentHelp("Attempts after which a message becomes a dead letter.", valueName: "n"))
  var maximumAttempts = 5

  @Option(
    name: .customLong("time-limit"),
    help: ArgumentHelp("How long a command can run before it is killed.", valueName: "seconds"))
  var limitSeconds = 60.0

  @Option(
    name: .customLong("lease"),
    help: ArgumentHelp(
      "How long after a crash the messages of running commands come again.", valueName: "seconds"))
  var leaseSeconds = 30.0

  @Option(
    name: .customLong("retry-delay"),
    help: ArgumentHelp(
      "The delay after a message's first failure. It doubles each time, up to an hour.",
      valueName: "seconds"))
  var firstDelaySeconds = 1.0

  @Flag(
    help: "Refuse a vault with the publicly known password, as DATAVAULT_REQUIRE_SECURED=1 does.")
  var requireSecured = false

  @Argument(
    parsing: .postTerminator,
    help: "The command, after --. It reads the payload on standard input and exits with 0.")
  var commandLine: [String] = []

  var requiresSecuredVault: Bool {
    requireSecured || environment("DATAVAULT_REQUIRE_SECURED").map { $0 != "0" } ?? false
  }

  var command: Command { Command(arguments: commandLine, limit: .seconds(limitSeconds)) }

  var workerConfiguration: WorkerConfiguration {
    var configuration = WorkerConfiguration()
    configuration.concurrency = workerCount
    configuration.maximumAttempts = maximumAttempts
    configuration.lease = .seconds(leaseSeconds)
    configuration.backoff.first = .seconds(firstDelaySeconds)
    configuration.backoff.maximum = .seconds(3600)
    // A shutdown waits for running commands.
    configuration.drainTimeout = .seconds(limitSeconds)
    return configuration
  }

  /// The systemd credential with the password; nil if the service has none.
  var password: SecretSource? {
    guard let directory = environment("CREDENTIALS_DIRECTORY"),
      FileManager.default.fileExists(atPath: "\(directory)/\(credential)")
    else { return nil }
    return .credential(credential)
  }

  func validate() throws {
    if home.isEmpty { throw ValidationError("give --home, or run as a service") }
    if socket.isEmpty { throw ValidationError("give --socket, or run as a service") }
    if commandLine.isEmpty { throw ValidationError("give the command to run, after --") }
    guard (1...64).contains(workerCount) else { throw ValidationError("use 1 to 64 workers") }
    guard maximumAttempts >= 1 else { throw ValidationError("use at least 1 attempt") }
    guard (1...86_400).contains(leaseSeconds) else {
      throw ValidationError("use a lease of 1 to 86,400 seconds")
    }
    guard (1...86_400).contains(limitSeconds) else {
      throw ValidationError("use a time limit of 1 to 86,400 seconds")
    }
    guard (0...3600).contains(firstDelaySeconds) else {
      throw ValidationError("use a retry delay of 0 to 3,600 seconds")
    }
  }
}

/// An environment variable; nil if it is not set or empty.
private func environment(_ name: String) -> String? {
  ProcessInfo.processInfo.environment[name].flatMap { $0.isEmpty ? nil : $0 }
}
