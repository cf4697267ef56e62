internal import MessagingQueue

/// The failure of a command: its message, its hint and the exit code.
package struct CommandFailure: Error {
  /// The exit code.
  package let status: ExitStatus
  /// What went wrong, in lower case, without a secret.
  package let message: String
  /// What to do next.
  package let hint: String?

  /// A failure with its message and, where there is a next step, a hint.
  package init(_ status: ExitStatus, _ message: String, hint: String? = nil) {
    self.status = status
    self.message = message
    self.hint = hint
  }

  /// Translates a library's error into a failure of the command.
  package init(translating error: any Error) {
    // The engine failed to write to standard output: that failure is the cause.
    let cause = (error as? EngineError)?.underlying
    switch cause as? CommandFailure ?? error {
    case let failure as CommandFailure: self = failure
    case let error as any ErrorWithExitCode:
      self.init(error.exitStatus, error.message, hint: error.hint)
    default: self.init(.inputOutput, "\(error)")
    }
  }

  /// Writes the message and the hint to standard error, a line each.
  func report() {
    StandardError.say(message)
    if let hint { StandardError.hint(hint) }
  }
}
