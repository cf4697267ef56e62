internal import ArgumentParser
internal import Logging
internal import Synchronization

/// The options `--quiet` and `--verbose` of commands that have no ``HomeOptions``.
package struct OutputLevelOptions: ParsableArguments {
  static let quietHelp: ArgumentHelp =
    "Print only results, errors, questions, and the warning that a vault is not secured."
  static let verboseHelp: ArgumentHelp =
    "Also say which home is used, what opens the vault, and how long each step takes."

  @Flag(name: .customLong("quiet"), help: Self.quietHelp) var isQuiet = false
  @Flag(name: .customLong("verbose"), help: Self.verboseHelp) var isVerbose = false

  /// Creates the options without values, for the parser.
  package init() {}

  /// Sets the level for the whole program.
  package func validate() throws { try OutputLevel.set(isQuiet: isQuiet, isVerbose: isVerbose) }
}

/// What the program prints in addition to its results and errors.
package enum OutputLevel {
  /// Only results, errors and questions.
  case quiet
  /// Progress, confirmations and warnings.
  case normal
  /// Also what it does.
  case verbose

  private static let level = Mutex(OutputLevel.normal)

  /// The level of the command; `normal` until its arguments are known.
  package static var current: OutputLevel {
    get { level.withLock { $0 } }
    set { level.withLock { $0 = newValue } }
  }

  /// Sets the level that the options name.
  static func set(isQuiet: Bool, isVerbose: Bool) throws {
    guard !isQuiet || !isVerbose else {
      throw ValidationError("give only one of --quiet and --verbose")
    }
    current = isQuiet ? .quiet : isVerbose ? .verbose : .normal
  }

  /// The least level of the libraries' log messages.
  static var ofLog: Logger.Level {
    switch current {
    case .quiet: .error
    case .normal: .warning
    case .verbose: .info
    }
  }
}

/// Details of what a command does, for `--verbose`: a line each on standard error, without a secret.
package enum Detail {
  private static let said = Mutex<Set<String>>([])

  /// Prints a line once.
  package static func say(_ text: @autoclosure () -> String) {
    guard OutputLevel.current == .verbose else { return }
    let text = text()
    if said.withLock({ $0.insert(text).inserted }) { StandardError.say(text) }
  }

  /// Says how long a step took, if it succeeds.
  ///
  /// - Parameter step: the completed step, such as "started the engine".
  package static func timing<Result>(
    _ step: @autoclosure () -> String, _ body: () async throws -> Result
  ) async rethrows -> Result {
    let start = ContinuousClock.now
    let result = try await body()
    say("\(step()) in \(PeopleText.seconds(since: start))")
    return result
  }
}
