/// What the messages' own rules say of a database whose pages are authentic:
/// `docs/verify-and-salvage.md`, "Messages".
public struct MessageVerification: Sendable, Hashable, Codable {
  /// How many faults of one rule are described; all are counted.
  static let describedCount = 20

  /// A rule that is broken.
  public struct Fault: Sendable, Hashable, Codable {
    /// The rule's name; stable.
    public internal(set) var rule: String
    /// How many rows break it.
    public internal(set) var count: Int
    /// Where, for the first of them: channels, consumers, timetokens; never contents.
    public internal(set) var places: [String]
  }

  /// The rules that are broken; none, if all is well.
  public internal(set) var faults: [Fault] = []

  /// Messages that were looked at.
  public internal(set) var messageCount = 0

  /// Whether nothing is wrong.
  public var isClean: Bool { faults.isEmpty }

  mutating func note(_ rule: String, _ place: @autoclosure () -> String) {
    let index =
      faults.firstIndex { $0.rule == rule }
      ?? {
        faults.append(Fault(rule: rule, count: 0, places: []))
        return faults.count - 1
      }()
    faults[index].count += 1
    if faults[index].places.count < Self.describedCount { faults[index].places.append(place()) }
  }
}
