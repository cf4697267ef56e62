/// What a command that fails says, and how the process then ends.
struct CommandFailure: Error {
  let status: ExitStatus
  /// What went wrong, in lower case, without a secret.
  let message: String
  /// What to do next.
  let hint: String?

  init(_ status: ExitStatus, _ message: String, hint: String? = nil) {
    self.status = status
    self.message = message
    self.hint = hint
  }

  /// Two lines for standard error.
  func report() {
    StandardError.say(message)
    if let hint { StandardError.hint(hint) }
  }
}
