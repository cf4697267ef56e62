/// The result of checking the messages' own rules in a database whose pages are authentic:
/// `docs/reference/verify-and-salvage.md`, "Messages".
public struct MessageVerification: Sendable, Hashable, Codable {
  /// How many faults of one rule are described; all are counted.
  static let describedCount = 20

  /// A rule that is broken.
  public struct Fault: Sendable, Hashable, Codable {
    /// The stable name of the rule.
    public internal(set) var rule: String
    /// How many rows break it.
    public internal(set) var count: Int
    /// The locations of the first of them: channels, consumers, timetokens; never contents.
    public internal(set) var locations: [String]

    // Programs read the member `places` of `--json`.
    private enum CodingKeys: String, CodingKey {
      case rule, count
      case locations = "places"
    }
  }

  /// The rules that are broken; empty for a clean database.
  public internal(set) var faults: [Fault] = []

  /// The version of the tables, whose rules were checked.
  public internal(set) var schemaVersion = 0

  /// Whether the next start of an engine brings the tables up to date.
  public var isOfOlderVersion: Bool {
    (1..<EngineSchema.migrations.count).contains(schemaVersion)
  }

  /// Messages that were checked.
  public internal(set) var messageCount = 0

  /// Whether no rule is broken.
  public var isClean: Bool { faults.isEmpty }

  mutating func note(_ rule: String, _ location: @autoclosure () -> String) {
    let index = faults.firstIndex { $0.rule == rule } ?? faults.count
    if index == faults.count { faults.append(Fault(rule: rule, count: 0, locations: [])) }
    faults[index].count += 1
    guard faults[index].locations.count < Self.describedCount else { return }
    faults[index].locations.append(location())
  }
}
