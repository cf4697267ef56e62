internal import Subprocess
internal import SystemPackage

/// A command that the daemon runs once for each message.
struct Command: Sendable {
  /// The program, found in $PATH, and its arguments.
  let arguments: [String]
  /// How long the command can run.
  ///
  /// Then it is killed with all processes that it has started.
  let limit: Duration

  /// Runs the command to its end.
  ///
  /// The environment describes the message. The payload goes through a pipe to standard input. It
  /// is never an argument, a variable or a file. A command does not have to read it.
  ///
  /// - Returns: why the command failed; nil if it exited with 0.
  func run(_ payload: [UInt8], variables: [String: String]) async throws -> String? {
    try await withThrowingTaskGroup(of: String?.self) { group in
      group.addTask { try await runToEnd(payload, variables) }
      group.addTask {
        try await Task.sleep(for: limit)
        return "killed after \(limit)"
      }
      defer { group.cancelAll() }
      return try await group.next() ?? nil
    }
  }

  private var program: Executable {
    arguments[0].contains("/") ? .path(FilePath(arguments[0])) : .name(arguments[0])
  }

  private func runToEnd(_ payload: [UInt8], _ variables: [String: String]) async throws -> String? {
    var options = PlatformOptions()
    options.processGroupID = 0
    options.teardownSequence = [
      .send(signal: .kill, toProcessGroup: true, allowedDurationToNextStep: .zero)
    ]
    // These variables are for the daemon, not for the command.
    var changes: [Environment.Key: String?] = ["NOTIFY_SOCKET": nil, "CREDENTIALS_DIRECTORY": nil]
    for (name, value) in variables { changes[Environment.Key(stringLiteral: name)] = value }
    do {
      let result = try await Subprocess.run(
        program, arguments: Arguments(Array(arguments.dropFirst())),
        environment: .inherit.updating(changes), platformOptions: options, input: .inputWriter,
        output: .currentStandardOutput, error: .currentStandardError
      ) { command in
        _ = try? await command.standardInputWriter.write(payload)
        try? await command.standardInputWriter.finish()
      }
      return switch result.terminationStatus {
      case .exited(0): nil
      case .exited(let code): "exited with \(code)"
      case .signaled(let signal): "ended by signal \(signal)"
      }
    } catch let error as SubprocessError where error.code == .executableNotFound {
      return "\(arguments[0]): No such file or directory"
    }
  }
}
