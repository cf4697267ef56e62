internal import Logging

extension EngineState {
  /// At which level it is logged that an engine has come to this state.
  ///
  /// A refusal that a caller is told of is no warning; one that comes from outside nobody else tells.
  var logLevel: Logger.Level {
    switch self {
    case .starting, .stopping: .debug
    case .running, .stopped: .info
    case .refused: .notice
    }
  }

  /// The line that is logged; there is never anything but the state in it.
  var logLine: Logger.Message {
    switch self {
    case .starting: "the engine is starting"
    case .running: "the engine runs"
    case .stopping: "the engine is stopping"
    case .stopped: "the engine has stopped"
    case .refused(let code): "the engine does not run: \(code)"
    }
  }
}
