/// A problem of a home's files or its database, with its fix.
public struct HomeFinding: Sendable {
  /// The kind's name, stable for programs: `permissionsTooOpen`, `foreignOwner`, `leftoverFile`, `salvageInterrupted`,
  /// `leftoverJournal`, `partialPage`, `diskNearlyFull`, `reserveMissing`, `limitNearlyReached`, `queueFull`,
  /// `rollbackNotChecked`, or the name of the error's code.
  ///
  /// `docs/reference/command-line.md` describes the kinds, in the section "doctor".
  public let kind: String

  /// The error that a start of an engine would throw; nil if it would start.
  public let error: VaultedDatabaseError?

  /// The problem, as text for people.
  public let message: String

  /// The next step.
  public let fix: String

  package init(_ kind: String, _ message: String, fix: String) {
    self.kind = kind
    error = nil
    self.message = message
    self.fix = fix
  }

  init(_ error: VaultedDatabaseError) {
    kind = error.code.description
    self.error = error
    message = error.message
    fix = error.hint ?? "see the message"
  }

  /// The kind of ``rollbackNotChecked(_:fix:)``.
  public static let rollbackNotCheckedKind = "rollbackNotChecked"

  /// The finding that the database was not opened, so that neither a rollback nor the limit would be noticed.
  ///
  /// - Parameter reason: why it was not checked.
  public static func rollbackNotChecked(_ reason: String, fix: String) -> HomeFinding {
    HomeFinding(
      rollbackNotCheckedKind,
      "cannot check whether the database was rolled back or reaches its limit: \(reason)",
      fix: fix)
  }
}
