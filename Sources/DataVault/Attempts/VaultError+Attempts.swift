extension VaultError {
  /// The secret is wrong; which part of it cannot be told.
  static func wrongPassword(_ id: VaultID) -> VaultError {
    VaultError(
      .wrongPassword, "password or salt of vault '\(id)' is wrong",
      hint: "both must be as they were when the password was set")
  }

  static func backingOff(_ id: VaultID, wait: Duration, failureCount: Int) -> VaultError {
    VaultError(
      .backingOff,
      "vault '\(id)' takes no attempt now: \(failureCount) wrong ones in a row",
      hint: "try again in \(wait.inWords)")
  }

  static func wiped(_ id: VaultID, failureCount: Int) -> VaultError {
    VaultError(
      .wiped,
      "vault '\(id)' was deleted: \(failureCount) wrong attempts in a row are more than its policy allows",
      hint: "restore it from a backup, if there is one")
  }

  static func unrecordedAttempt(_ id: VaultID, _ reason: VaultError) -> VaultError {
    VaultError(
      reason.code == .busy ? .busy : .writeFailed,
      "vault '\(id)' did not open, and the attempt cannot be recorded: \(reason.message)",
      hint: reason.hint, underlying: reason)
  }
}

extension Duration {
  /// Whole seconds or minutes, rounded up, for people.
  fileprivate var inWords: String {
    let seconds = Int(components.seconds) + (components.attoseconds > 0 ? 1 : 0)
    if seconds == 1 { return "1 second" }
    return seconds <= 120 ? "\(seconds) seconds" : "\((seconds + 59) / 60) minutes"
  }
}
