import DataVault
import Foundation
import Glibc
import SystemPackage
import VaultCrypto
import VaultedDatabase

/// The cost of `datavault get` and `set` during a session, beyond that of `datavault --version`.
///
/// `--version` only starts the process.
enum CommandCost {
  static let name = "get and set, live session: beyond process start"
  /// The number of runs of a command in a round; the two commands take turns.
  ///
  /// The mean counts, because one run takes only milliseconds.
  private static let runCount = 20

  /// - Parameter program: the built `datavault`.
  static func measure(program: String, home: DataVaultHome, rounds: Int) async throws -> [ResultRow]
  {
    let id = try VaultID("benchmark")
    guard try await makeVault(id, in: home) else { return [] }
    let input = home.path.appending("input").string
    try Data("another token".utf8).write(to: URL(fileURLWithPath: input))

    let start = [program, "--version"]
    let item = [id.rawValue, "token", "--home", home.path.string]
    let rows = try [
      ("get", [program, "get"] + item, 7.5), ("set", [program, "set"] + item, 9.5),
    ].map { command, arguments, limit in
      var pairs: [(ours: Cost, other: Cost)] = []
      for round in 0...rounds {
        let pair = try costs(of: arguments, start, input)
        // The first round fills the caches and does not count.
        if round > 0 { pairs.append(pair) }
      }
      return ResultRow(
        beyond: "\(command), live session: beyond process start", pairs, goal: 5, limit: limit)
    }
    try await VaultSession.end(id, in: home.store)
    return rows
  }

  /// Makes a vault with an item and a session.
  ///
  /// - Returns: false if the kernel refuses sessions.
  private static func makeVault(_ id: VaultID, in home: DataVaultHome) async throws -> Bool {
    let credentials = Credentials(password: SecretBytes(copying: Array("correct horse".utf8)))
    let vault = try await Vault.create(id, in: home.store, credentials: credentials)
    let value = SecretBytes(copying: Array("t0ken".utf8))
    try await vault.set(value, kind: .string, for: "token")
    do throws(VaultError) {
      try await vault.openSession(for: .seconds(600))
      return true
    } catch {
      guard error.code == .sessionsUnavailable else { throw error }
      print("  \(name): not measured, \(error.message)")
      return false
    }
  }

  /// The mean costs of some runs of two commands.
  private static func costs(
    of command: [String], _ start: [String], _ input: String
  ) throws -> (ours: Cost, other: Cost) {
    var sums = (ours: Cost(), other: Cost())
    for _ in 0..<runCount {
      sums.other = sums.other + (try cost(of: start, input))
      sums.ours = sums.ours + (try cost(of: command, input))
    }
    return (sums.ours / Double(runCount), sums.other / Double(runCount))
  }

  /// The wall time, and the processor time of the child process.
  private static func cost(of command: [String], _ input: String) throws -> Cost {
    let before = childProcessorSeconds()
    var cost = try Cost.of { try run(command, input) }
    cost.processorSeconds = childProcessorSeconds() - before
    return cost
  }

  private static func run(_ command: [String], _ input: String) throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
    var arguments = command.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var id: pid_t = 0
    guard posix_spawn(&id, command[0], &actions, nil, &arguments, environ) == 0 else {
      throw BenchmarkError("\(command[0]) cannot be started")
    }
    var status: Int32 = 0
    while waitpid(id, &status, 0) < 0, errno == EINTR {}
    guard status == 0 else { throw BenchmarkError("\(command) ended with \(status >> 8)") }
  }

  private static func childProcessorSeconds() -> Double {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_CHILDREN.rawValue), &usage)
    return [usage.ru_utime, usage.ru_stime].reduce(0) {
      $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6
    }
  }
}
