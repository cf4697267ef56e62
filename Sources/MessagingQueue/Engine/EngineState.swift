/// Where in its life an engine is.
public enum EngineState: Sendable, Hashable {
  /// It has not been started, or has ended in good order.
  case stopped
  /// It opens the vault and the database, or waits for somebody to unlock the vault.
  case starting
  /// It takes work.
  case running
  /// It takes no more work and is finishing what it has.
  case stopping
  /// It does not run, for the reason given: a start failed, or the vault was locked.
  case refused(EngineError.Code)
}
