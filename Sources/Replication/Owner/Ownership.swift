/// Whether this node owns the leases: event in, action out.
///
/// A process is the owner in at most one epoch. It leases only between two moments: when the leases of every owner
/// before it are over, and when the heartbeat limit has passed since it wrote the last heartbeat that it has read
/// back.
package struct Ownership: Sendable {
  /// Spans on the nodes' own clocks, which are the same on all nodes.
  package struct Limits: Sendable, Hashable {
    /// Between two heartbeats.
    package var heartbeatInterval: Duration = .seconds(1)
    /// How long after writing a heartbeat an owner can lease.
    package var heartbeatLimit: Duration = .seconds(5)
    /// How long a node reads nothing of the owner before it claims.
    package var silence: Duration = .seconds(5)
    /// No lease, and no extension of one, ends later than this from when it is given.
    package var longestLease: Duration = .seconds(60)
    /// How much longer a new owner waits, for clocks that run at different rates.
    package var margin: Duration = .seconds(1)

    package init() {}
  }

  /// What the caller writes into its outbox.
  package enum Action: Sendable, Hashable {
    case nothing
    /// An epoch record.
    case claim(EpochID, predecessor: EpochID?)
    /// A heartbeat.
    case beat(EpochID, UInt64)
  }

  private enum Phase: Sendable {
    case follower
    case claimed(EpochID, writtenAt: Duration)
    case owner(Term)
  }

  private struct Term: Sendable {
    let epoch: EpochID
    let leasesFrom: Duration
    /// When the last heartbeat was written that was read back; the claim is the first.
    var confirmedAt: Duration
    var beat: UInt64 = 0
    /// When the heartbeat was written that was not read back yet.
    var pendingSince: Duration?
  }

  let limits: Limits
  let rules: SafetyRules
  private var phase = Phase.follower
  /// When the node last read something of the owner, or began to read continuously.
  private var silentSince: Duration?
  private var lastRead: Duration?

  package init(_ limits: Limits = Limits(), rules: SafetyRules = .all) {
    self.limits = limits
    self.rules = rules
  }

  /// The epoch in which this process is the owner.
  package var epoch: EpochID? {
    if case .owner(let term) = phase { term.epoch } else { nil }
  }

  /// Whether it can lease and extend now.
  package func mayLease(_ now: Duration) -> Bool {
    guard case .owner(let term) = phase else { return false }
    if rules.contains(.waitsForOldLeases), now < term.leasesFrom { return false }
    return now < term.confirmedAt + limits.heartbeatLimit || !rules.contains(.needsHeartbeat)
  }

  /// The node has read what the log had a moment ago.
  ///
  /// Silence counts only while it reads: a node that was cut off gives the owner its time.
  package mutating func noteRead(_ now: Duration) {
    if lastRead.map({ now - $0 > limits.heartbeatInterval }) ?? true { silentSince = now }
    lastRead = now
  }

  /// The node has applied an epoch record or a heartbeat.
  ///
  /// - Parameter current: the epoch that counts after it.
  package mutating func noteApplied(_ body: Record.Body, current: EpochID?, _ now: Duration) {
    switch body {
    case .epoch(let epoch, _, _):
      guard epoch == current else {
        if case .claimed(epoch, _) = phase { phase = .follower }
        return
      }
      silentSince = now
      if case .claimed(epoch, let writtenAt) = phase {
        let wait = limits.heartbeatLimit + limits.longestLease + limits.margin
        phase = .owner(Term(epoch: epoch, leasesFrom: now + wait, confirmedAt: writtenAt))
      } else {
        phase = .follower
      }
    case .heartbeat(let epoch, let beat):
      guard epoch == current else { return }
      silentSince = now
      guard case .owner(var term) = phase, term.epoch == epoch, term.beat == beat else { return }
      term.confirmedAt = term.pendingSince ?? term.confirmedAt
      term.pendingSince = nil
      phase = .owner(term)
    default: break
    }
  }

  /// The node has undone records: what it leased was leased in another history.
  package mutating func noteUndone() {
    if rules.contains(.endsEpochOnUndo) { phase = .follower }
  }

  /// Says what to write now.
  ///
  /// - Parameter current: the epoch that counts.
  package mutating func tick(
    _ now: Duration, current: EpochID?, using random: inout some RandomNumberGenerator
  ) -> Action {
    switch phase {
    case .claimed: return .nothing
    case .owner(var term):
      guard term.pendingSince == nil, now >= term.confirmedAt + limits.heartbeatInterval else {
        return .nothing
      }
      term.beat += 1
      term.pendingSince = now
      phase = .owner(term)
      return .beat(term.epoch, term.beat)
    case .follower:
      guard let silentSince, let lastRead, now - lastRead <= limits.heartbeatInterval,
        current == nil || now - silentSince >= limits.silence
      else { return .nothing }
      let epoch = EpochID(using: &random)
      phase = .claimed(epoch, writtenAt: now)
      return .claim(epoch, predecessor: current)
    }
  }
}
