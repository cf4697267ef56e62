/// How urgent a message is to receivers: 0 to 9, as in JMS, 4 unless said otherwise.
///
/// Of what is ready, a receiver gets the highest priority first, and the oldest first within one. The
/// log keeps the order of publishing.
public struct Priority: Sendable, Hashable, Comparable {
  /// Priority 4.
  public static let normal = Priority(stored: 4)
  /// All of them, the highest first.
  static let descending = (0...9).reversed().map(Priority.init(stored:))

  /// The number.
  public let rawValue: Int

  /// Takes a number from 0, the least urgent, to 9.
  ///
  /// - Throws: ``EngineError/Code/invalidArgument``.
  public init(_ number: Int) throws(EngineError) {
    guard (0...9).contains(number) else {
      throw EngineError(
        .invalidArgument, "there is no priority \(number)", hint: "use 0 to 9; 4 is normal")
    }
    rawValue = number
  }

  /// A priority that was checked when it was stored.
  init(stored number: Int) {
    rawValue = number
  }

  /// Whether `a` comes after `b`.
  public static func < (a: Priority, b: Priority) -> Bool { a.rawValue < b.rawValue }
}
