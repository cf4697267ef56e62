import Replication

/// What survives the end of a process: one database, all of it changed in transactions.
struct SimulatedDisk {
  let member: MemberID
  var applier: Applier
  var tables: SimulatedTables
  var outbox = Outbox(MemoryRows())
  /// Ranges that this node has undone itself, before the log says so.
  var repaired: [ShardState.TimetokenRange] = []

  init(_ member: MemberID, rules: SafetyRules) {
    self.member = member
    applier = Applier(rules: rules)
    tables = SimulatedTables(rules: rules)
  }

  /// Applies a part of the log, in one transaction.
  mutating func take(
    _ batch: Applier.Batch, _ keys: ClosedRange<UInt32>, _ outcomes: inout [Applier.Outcome]
  ) throws {
    try applier.take(
      batch, syncInterval: .milliseconds(SimulatedBroker.syncInterval), into: &tables,
      outcomes: &outcomes
    ) { record in
      guard keys.contains(record.key) else { throw Applier.Alarm.unreadable(record.name) }
      return Array(record.sealed.dropFirst(8))
    }
  }

  /// Takes the place of another member's backup, keeping what this disk has promised.
  mutating func replace(by backup: SimulatedDisk, rules: SafetyRules) throws {
    let earlier = self
    applier = backup.applier
    tables = backup.tables
    repaired = earlier.repaired + backup.repaired
    outbox = Outbox(MemoryRows())
    guard rules.contains(.carriesOutbox) else { return }
    try outbox.takeOver(earlier.outbox)
    try outbox.takeBack(earlier.tables.tailRecords)
    try outbox.remove(appliedIn: applier.state)
    let range = ShardState.TimetokenRange(
      from: earlier.applier.safeValues.highWater, to: earlier.applier.state.values.highWater)
    if range.from < range.to { repaired.append(range) }
  }

  /// The oldest key that this disk needs.
  var oldestKey: UInt32 {
    [outbox.rows.oldestKey, applier.oldestKey, applier.state.values.key].compactMap(\.self).min()
      ?? 1
  }

  /// Where a reader continues.
  func readingPlace(_ cursor: Int64) -> Int64 {
    repaired.reduce(applier.state.readingPlace(cursor)) { place, range in
      range.readingPlace(place)
    }
  }
}

/// A node: a disk, and a process while it is up.
struct SimulatedNode {
  let index: Int
  var disk: SimulatedDisk
  /// What a power cut leaves of it; nil while none is near.
  var durable: SimulatedDisk?
  var isUp = false
  /// How often the process was started: events of an earlier process are dropped.
  var process = 0
  /// How often the disk was lost or went back in time.
  var diskNumber = 0
  /// Nothing reaches it, or comes from it, before this time.
  var cutOffUntil: Int64 = 0
  /// Its process stands still until then, as under SIGSTOP.
  var pausedUntil: Int64 = 0
  /// Its wall clock beside the true one, in milliseconds.
  var wallOffset: Int64 = 0
  /// How far apart the values of its wall clock are, in milliseconds.
  ///
  /// With a coarse clock, timetokens follow the order alone.
  var clockStep: Int64 = 1
  /// How many parts in a million its boot clock is fast.
  var clockRate: Int64 = 0
  var canOwn = true
  /// It has no database of the log yet, and waits for a member's backup.
  var isJoining = false
  /// It was expelled, restored or joins, so that a trimmed log is no fault.
  var mayFindTrimmed = false
  /// When a joiner wrote its join, and whether it did under the ring's first key, handed to it long ago.
  var joinWrittenAt: Int64 = 0
  var hasOldRing = false
  /// Keys that it has, by number.
  var keys: ClosedRange<UInt32> = 1...1
  var backups: [SimulatedDisk] = []
  /// The cursor of a reader who reads through this node.
  var cursor: Int64 = 0

  // The process's memory.
  var relay: Relay
  var horizon = ReadHorizon()
  var ownership: Ownership
  var leases: LeaseTable
  var plan: TrimPlan
  /// Publications that wait until they are read back.
  var publications: [RecordNumber: [Int]] = [:]
  /// Settlements that wait until they are read back, with who is answered.
  var settlements: [RecordNumber: (lease: LeaseID, worker: Int?)] = [:]
  var pendingRead: (id: UInt64, at: Int64)?
  /// The report that is under way.
  var pendingReport: RecordNumber?

  init(_ index: Int, _ member: MemberID, _ settings: SimulationSettings) {
    self.index = index
    disk = SimulatedDisk(member, rules: settings.rules)
    relay = Relay(settings.relay)
    ownership = Ownership(settings.ownership, rules: settings.rules)
    leases = LeaseTable(rules: settings.rules)
    plan = TrimPlan(settings.trim)
  }

  /// The disk is synchronized.
  mutating func synchronize() {
    if durable != nil { durable = disk }
  }

  /// Ends the process: its memory is gone.
  mutating func stop(_ settings: SimulationSettings) {
    isUp = false
    process += 1
    relay = Relay(settings.relay)
    horizon = ReadHorizon()
    let keptOwnership = ownership
    ownership = Ownership(settings.ownership, rules: settings.rules)
    leases = LeaseTable(rules: settings.rules)
    plan = TrimPlan(settings.trim)
    // A rule that is turned off: the new process goes on in the old epoch.
    if !settings.rules.contains(.endsEpochOnUndo) { ownership = keptOwnership }
    publications = [:]
    settlements = [:]
    pendingRead = nil
    pendingReport = nil
  }

  /// The boot clock.
  func clock(_ now: Int64) -> Duration { .microseconds(now * 1000 + now * clockRate / 1000) }

  /// The wall clock, in units of 100 ns since 1970.
  func wallTime(_ now: Int64) -> Int64 {
    SimulationSettings.epoch + (now + wallOffset) / clockStep * clockStep * 10_000
  }
}

/// How a simulation is set up.
struct SimulationSettings {
  /// The wall clock when a simulation begins, in units of 100 ns since 1970.
  static let epoch: Int64 = 17_900_000_000_000_000

  /// In milliseconds.
  static let longestLease: Int64 = 1_200

  var rules = SafetyRules.all
  var seed: UInt64 = 0
  var steps = 4_000
  var nodeCount = 3
  /// Whether some records are cut into parts.
  var cutsRecords = true
  /// Whether brokers lose what they did not synchronize.
  var brokersForget = true
  var ownership: Ownership.Limits = {
    var limits = Ownership.Limits()
    limits.heartbeatInterval = .milliseconds(200)
    limits.heartbeatLimit = .milliseconds(700)
    limits.silence = .milliseconds(800)
    limits.longestLease = .milliseconds(SimulationSettings.longestLease)
    limits.margin = .milliseconds(100)
    return limits
  }()
  var relay: Relay.Limits = {
    var limits = Relay.Limits()
    limits.window = 16
    limits.patience = .milliseconds(700)
    limits.gapPause = .milliseconds(100)
    return limits
  }()
  var trim: TrimPlan.Limits = {
    var limits = TrimPlan.Limits()
    limits.step = 60
    limits.longestLag = .seconds(12)
    return limits
  }()
}
