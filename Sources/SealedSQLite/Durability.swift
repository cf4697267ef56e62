/// When a committed transaction is on disk: <https://sqlite.org/pragma.html#pragma_synchronous>.
public struct Durability: Sendable, Equatable {
  let level: Int

  /// Each commit is synchronized before it returns: the default.
  public static let full = Durability(level: 2)
  /// Only checkpoints are synchronized: a power cut may take the last commits, never consistency.
  public static let normal = Durability(level: 1)
}
