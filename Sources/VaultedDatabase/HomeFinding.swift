/// Something about a home's files, or its database, that is not as it should be, with its fix.
public struct HomeFinding: Sendable {
  /// The kind's name, stable for programs: `loosePermissions`, `foreignOwner`, `rollbackNotChecked`, or the
  /// name of the error's code.
  public let kind: String

  /// The error that an engine's start would end with; nil when it would start.
  public let error: VaultedDatabaseError?

  /// What was found, for people.
  public let message: String

  /// What to do about it.
  public let fix: String

  init(_ kind: String, _ message: String, fix: String) {
    self.kind = kind
    error = nil
    self.message = message
    self.fix = fix
  }

  init(_ error: VaultedDatabaseError) {
    kind = error.code.name
    self.error = error
    message = error.message
    fix = error.hint ?? "see the message"
  }

  /// That nobody has looked whether the database is an older copy.
  ///
  /// - Parameter reason: why not.
  public static func rollbackNotChecked(_ reason: String, fix: String) -> HomeFinding {
    HomeFinding(
      "rollbackNotChecked", "whether the database was rolled back cannot be told: \(reason)",
      fix: fix)
  }
}
