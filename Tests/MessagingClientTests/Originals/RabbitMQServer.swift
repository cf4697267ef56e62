import Foundation
import TestSupport
import Testing

/// RabbitMQ with its STOMP plugin, from Debian's packages, in a temporary folder and on a free port of this machine.
final class RabbitMQServer: Sendable {
  static let skipReason: Comment =
    "RabbitMQ is missing: scripts/install-dependencies --bench"
  static let isAvailable = (try? programs()) != nil && (try? rabbit()) != nil

  private static let erlang = Repository.path(".build/peer-servers/usr/lib/erlang")
  private static let node = "test@localhost"

  let port: UInt16
  private let scratch = ScratchFolder()
  private let process = Process()

  private static func programs() throws -> String {
    "\(erlang)/\(try entry(of: erlang, "erts-"))/bin"
  }

  private static func rabbit() throws -> String {
    let folder = Repository.path(".build/peer-servers/usr/lib/rabbitmq/lib")
    return "\(folder)/\(try entry(of: folder, "rabbitmq_server-"))"
  }

  /// The folder whose name has a version.
  private static func entry(of folder: String, _ prefix: String) throws -> String {
    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
    guard let name = names.first(where: { $0.hasPrefix(prefix) }) else {
      throw CocoaError(.fileNoSuchFile)
    }
    return name
  }

  init() throws {
    port = try LoopbackSocket.freePorts(1)[0]
    let (programs, rabbit) = (try Self.programs(), try Self.rabbit())
    try scratch.put(
      "listeners.tcp = none\nstomp.listeners.tcp.1 = 127.0.0.1:\(port)\n", at: "rabbitmq.conf")
    try scratch.put("[rabbitmq_stomp].", at: "enabled_plugins")
    process.executableURL = URL(fileURLWithPath: "\(programs)/erlexec")
    process.arguments = Self.arguments
    let folder = scratch.url.path
    process.environment = ProcessInfo.processInfo.environment.merging([
      "HOME": folder, "ROOTDIR": Self.erlang, "BINDIR": programs, "EMU": "beam", "PROGNAME": "erl",
      "ERL_LIBS": "\(rabbit)/plugins", "ERL_MAX_ETS_TABLES": "50000", "ERL_CRASH_DUMP_SECONDS": "0",
      "RABBITMQ_NODENAME": Self.node, "RABBITMQ_HOME": rabbit, "RABBITMQ_BASE": folder,
      "RABBITMQ_LOGS": "-", "RABBITMQ_LOG_BASE": folder,
      "RABBITMQ_MNESIA_BASE": scratch.path("mnesia"),
      "RABBITMQ_PLUGINS_DIR": "\(rabbit)/plugins",
      "RABBITMQ_CONFIG_FILE": scratch.path("rabbitmq.conf"),
      "RABBITMQ_ADVANCED_CONFIG_FILE": scratch.path("advanced.config"),
      "RABBITMQ_CONF_ENV_FILE": scratch.path("rabbitmq-env.conf"),
      "RABBITMQ_ENABLED_PLUGINS_FILE": scratch.path("enabled_plugins"),
    ]) { $1 }
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try scratch.writing("log")
    process.standardError = FileHandle.nullDevice
    try process.run()
  }

  deinit { stop() }

  /// Waits until it accepts connections.
  func waitUntilReady() async throws {
    try await eventually(scratch.contents(of: "log") ?? "") {
      try #require(process.isRunning, "\(scratch.contents(of: "log") ?? "")")
      return LoopbackSocket.accepts(port)
    }
  }

  func stop() {
    guard process.isRunning else { return }
    // It blocks SIGTERM, as the thread does that starts it.
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// The arguments of RabbitMQ's script, which runs an Erlang at a fixed path.
  ///
  /// The node has the name that its database needs, but no port for other nodes and no port mapper. The number of the
  /// port is only reported. One scheduler has enough to do here.
  private static var arguments: [String] {
    """
    -noinput -s rabbit boot -boot start_sasl -hidden -sname \(node) -dist_listen false
    -start_epmd false -erl_epmd_port 25672 +S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none
    -syslog logger [] -syslog syslog_error_logger false
    -kernel prevent_overlapping_partitions false
    """.split(whereSeparator: \.isWhitespace).map(String.init)
  }
}

/// Starts one RabbitMQ for the tests of a suite, and ends it behind them.
struct WithRabbitMQ: SuiteTrait, TestScoping {
  @TaskLocal static var server: RabbitMQServer?

  func provideScope(
    for test: Test, testCase: Test.Case?,
    performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    let server = try RabbitMQServer()
    defer { server.stop() }
    try await server.waitUntilReady()
    try await Self.$server.withValue(server) { try await function() }
  }
}

extension Trait where Self == WithRabbitMQ {
  static var rabbitMQ: Self { Self() }
}
