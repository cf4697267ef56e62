/// What an owner decides about the members: what the log need not keep, and who is expelled.
package struct TrimPlan: Sendable {
  package struct Limits: Sendable, Hashable {
    /// How many records are trimmed at a time.
    package var step: UInt64 = 10_000
    /// How long a member can report no progress while others do.
    package var longestLag: Duration = .seconds(3600)

    package init() {}
  }

  private struct Report: Sendable {
    let safe: UInt64
    let since: Duration
  }

  private let limits: Limits
  private var reports: [MemberID: Report] = [:]
  private var proposed: UInt64 = 0

  package init(_ limits: Limits = Limits()) { self.limits = limits }

  /// Looks at the members as the log knows them.
  ///
  /// - Returns: what the owner writes into its outbox.
  package mutating func plan(_ state: ShardState, _ now: Duration) -> [Record.Body] {
    var bodies: [Record.Body] = []
    var least: UInt64?
    let furthest = state.members.values.map(\.safe).max() ?? 0
    for (id, member) in state.members.sorted(by: { $0.key < $1.key }) {
      if reports[id]?.safe != member.safe || member.safe == furthest {
        reports[id] = Report(safe: member.safe, since: now)
      }
      if let report = reports[id], now - report.since > limits.longestLag {
        bodies.append(.leave(id))
        reports[id] = nil
      } else {
        least = min(least ?? member.safe, member.safe)
      }
    }
    reports = reports.filter { state.members[$0.key] != nil }
    if let least, least >= max(state.values.trimmedThrough, proposed) + limits.step {
      proposed = least
      bodies.append(.trim(through: least))
    }
    return bodies
  }

  /// Forgets what was seen: another node was the owner.
  package mutating func reset() { self = TrimPlan(limits) }
}
