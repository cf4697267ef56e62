internal import MessagingQueue
internal import Replication

/// What a process of a node has in memory: it ends with it.
struct NodeState: Sendable {
  var view: ShardDatabase.View
  var relay: Relay
  var ownership: Ownership
  var leases = LeaseTable()
  /// Which requests of other members this owner admits.
  var window: RequestWindow?
  /// The newest heartbeat of the present epoch that was applied here.
  var beat: UInt64 = 0
  var plan: TrimPlan
  /// The report that is under way.
  var report: (name: RecordNumber, at: Duration)?
  var reportedAt: Duration
  var trimmedThrough: UInt64 = 0
  /// When a trim that failed is tried again.
  var trimsAgainAt: Duration = .zero
  /// Up to when this node knows the log.
  var horizon = ReadHorizon()
  /// Why the last part of the log was not applied.
  var unapplied: EngineError?
  /// Why the node takes no work any more.
  var end: ReplicationError?
  // The thread sanitizer checks its address, which a local variable without a byte does not have.
  private var random = SystemRandomNumberGenerator()

  init(_ view: ShardDatabase.View, _ configuration: NodeConfiguration, now: Duration) {
    self.view = view
    relay = Relay(configuration.relay)
    ownership = Ownership(configuration.ownership)
    plan = TrimPlan(configuration.trim)
    reportedAt = now
  }

  /// Takes what a batch of the log has changed.
  mutating func take(_ taken: ShardDatabase.Taken, _ batch: Applier.Batch, now: Duration) {
    view = taken.view
    unapplied = nil
    for (old, new) in taken.renamed where report?.name == old { report?.name = new }
    if !taken.renamed.isEmpty { relay.noteReturned() }
    for outcome in taken.outcomes { follow(outcome, now) }
    let position = view.values.position
    let isComparing = view.readPlace != position
    if horizon.note(batch, position: position, isComparing: isComparing) {
      ownership.noteRead(now)
    }
  }

  /// Goes on without knowing what was written or applied last: as another process would, but with the same authors.
  mutating func startAgain(_ configuration: NodeConfiguration) {
    ownership = Ownership(configuration.ownership)
    leases.removeAll()
    report = nil
  }

  private mutating func follow(_ outcome: Applier.Outcome, _ now: Duration) {
    switch outcome {
    case .applied(let name, let record, _):
      relay.noteApplied(name, now)
      ownership.noteApplied(record.body, current: view.values.epoch?.epoch, now)
      if report?.name == name { report = nil }
      note(record.body)
    case .continued(let name): relay.noteApplied(name, now)
    case .gap(let name): relay.noteGap(name, horizon, now)
    case .repeated(let name): relay.noteRepeated(name)
    case .retiredKey: break
    case .undone:
      relay.noteReturned()
      ownership.noteUndone()
    }
    if ownership.epoch == nil { leases.removeAll() }
  }

  private mutating func note(_ body: Record.Body) {
    let current = view.values.epoch?.epoch
    switch body {
    case .settlement(let settlement): leases.remove(settlement.lease)
    case .epoch(let epoch, _, _): if epoch == current { beat = 0 }
    case .heartbeat(let epoch, let number): if epoch == current { beat = number }
    default: break
    }
  }

  /// What this node writes of itself now.
  mutating func due(
    _ configuration: NodeConfiguration, member: MemberID, now: Duration
  ) -> [Record.Body] {
    var bodies: [Record.Body] = []
    switch ownership.tick(now, current: view.values.epoch?.epoch, using: &random) {
    case .nothing: break
    case .claim(let epoch, let predecessor):
      leases.removeAll()
      plan.reset()
      window = RequestWindow(epoch: epoch)
      bodies.append(.epoch(epoch, predecessor: predecessor, member))
    case .beat(let epoch, let beat):
      window?.noteBeat(beat)
      bodies.append(.heartbeat(epoch, beat: beat))
    }
    guard ownership.epoch != nil else { return bodies }
    let state = ShardState(view.values, authors: [:], members: view.members)
    return bodies + plan.plan(state, now)
  }

  /// Whether the members should learn how far this one has come.
  func isReportDue(
    _ configuration: NodeConfiguration, member: MemberID, newestKey: UInt32, now: Duration
  ) -> Bool {
    guard let known = view.members[member], report == nil else { return false }
    if known.newestKey != newestKey || view.safe >= known.safe + configuration.reportStep {
      return true
    }
    let hasNews = view.safe > known.safe || known.oldestKey < newestKey
    return hasNews && now - reportedAt >= configuration.reportInterval
  }
}
