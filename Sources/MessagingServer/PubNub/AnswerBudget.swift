/// What an answer still has room for: what does not fit is left out.
struct AnswerBudget: Sendable {
  /// The most bytes of JSON.
  static let maximumByteCount = 4 << 20
  /// The most users that here-now lists, of all channels.
  static let maximumUserCount = 10_000
  /// The most channels of an application that here-now looks at.
  static let maximumChannelCount = 10_000
  /// The most messages of a channel that history passes over, and the most that are counted.
  static let maximumMessageCount = 10_000

  /// The bytes of the entries: the others are for what is around them.
  private static let entryByteCount = maximumByteCount - 1_024

  private var hiddenCount = Self.maximumMessageCount
  private var byteCount = Self.entryByteCount
  private(set) var userCount = Self.maximumUserCount

  /// Takes room for the bytes of an entry; false if there is none.
  ///
  /// The first entry always has room.
  mutating func take(byteCount: Int) -> Bool {
    guard byteCount <= self.byteCount || self.byteCount == Self.entryByteCount else { return false }
    self.byteCount -= byteCount
    return true
  }

  /// Whether history can pass over more messages.
  var hasHidden: Bool { hiddenCount > 0 }

  mutating func takeHidden() { hiddenCount -= 1 }

  /// Takes room for a user; false if there is none.
  mutating func takeUser(byteCount: Int) -> Bool {
    guard userCount > 0, take(byteCount: byteCount) else { return false }
    userCount -= 1
    return true
  }
}
