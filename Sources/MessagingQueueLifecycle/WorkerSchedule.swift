internal import MessagingQueue

/// Which channel receives next and how many: event in, actions out.
///
/// It does no I/O and never waits. Four rules hold: jobs that run or are being received never exceed
/// the slots, each ready channel gets its share of the free slots in turn, a paused channel receives
/// nothing, and after a drain has begun nothing new runs.
struct WorkerSchedule: Sendable {
  /// An event of the service.
  enum Event: Sendable {
    case start
    /// A receive has returned. The jobs that it got hold slots.
    case received(lane: Int, [Delivery])
    /// A receive failed for a time.
    case receiveFailed(lane: Int)
    /// A channel that was empty or failed can be tried again.
    case ready(lane: Int)
    /// A job has ended, or was given back.
    case finished(lane: Int)
    /// Which channels are paused.
    case paused(Set<Int>)
    /// Nothing new begins; the jobs that run can finish.
    case drain
    /// Jobs that run are to end now.
    case stopNow
  }

  /// What the shell does next.
  enum Action: Sendable, Hashable {
    case receive(lane: Int, count: Int)
    /// Report `ready` when the channel possibly has messages again.
    case awaitMessages(lane: Int)
    /// Report `ready` after a pause.
    case retryLater(lane: Int)
    case run(lane: Int, Delivery)
    /// Release without a counted attempt, and report `finished`.
    case giveBack(lane: Int, Delivery)
    case cancelWaits
    case cancelJobs
    /// All jobs have ended.
    case end
  }

  private struct Lane {
    /// The most jobs at a time.
    let limit: Int
    var runningCount = 0
    /// The slots of the receive under way; 0 if there is none.
    var reservedCount = 0
    var isWaiting = false
    var isPaused = false

    var freeCount: Int { limit - runningCount - reservedCount }
  }

  /// The most jobs of one receive.
  static let maximumBatch = 100

  private let slotCount: Int
  private var lanes: [Lane]
  /// The lane whose turn it is.
  private var nextLane = 0
  private var isDraining = false
  private var hasEnded = false

  /// - Parameter limits: the most jobs at a time of each channel; nil for no limit but `slotCount`.
  init(slotCount: Int, limits: [Int?]) {
    self.slotCount = slotCount
    lanes = limits.map { Lane(limit: min($0 ?? slotCount, slotCount)) }
  }

  /// Slots that no job runs in and no receive has reserved.
  var freeCount: Int { slotCount - lanes.reduce(0) { $0 + $1.runningCount + $1.reservedCount } }

  mutating func handle(_ event: Event) -> [Action] {
    var actions: [Action] = []
    switch event {
    case .start: break
    case .received(let lane, let deliveries):
      lanes[lane].reservedCount = 0
      lanes[lane].runningCount += deliveries.count
      actions = deliveries.map {
        isDraining || lanes[lane].isPaused
          ? .giveBack(lane: lane, $0) : .run(lane: lane, $0)
      }
      if deliveries.isEmpty { actions += wait(lane, .awaitMessages(lane: lane)) }
    case .receiveFailed(let lane):
      lanes[lane].reservedCount = 0
      actions = wait(lane, .retryLater(lane: lane))
    case .ready(let lane): lanes[lane].isWaiting = false
    case .finished(let lane): lanes[lane].runningCount -= 1
    case .paused(let paused):
      for lane in lanes.indices { lanes[lane].isPaused = paused.contains(lane) }
    case .drain:
      if !isDraining { actions = [.cancelWaits] }
      isDraining = true
    case .stopNow:
      actions = isDraining ? [.cancelJobs] : [.cancelWaits, .cancelJobs]
      isDraining = true
    }
    return actions + (isDraining ? end() : receive())
  }

  private mutating func wait(_ lane: Int, _ action: Action) -> [Action] {
    lanes[lane].isWaiting = true
    return isDraining ? [] : [action]
  }

  private mutating func end() -> [Action] {
    guard !hasEnded, freeCount == slotCount else { return [] }
    hasEnded = true
    return [.end]
  }

  /// Divides the free slots among the ready channels, beginning with the one whose turn it is.
  private mutating func receive() -> [Action] {
    let order = (0..<lanes.count).map { (nextLane + $0) % lanes.count }
    var ready = order.filter { lane in
      let lane = lanes[lane]
      return !lane.isPaused && !lane.isWaiting && lane.reservedCount == 0 && lane.freeCount > 0
    }[...]
    var actions: [Action] = []
    while let lane = ready.first, freeCount > 0 {
      let share = max(1, freeCount / ready.count)
      let count = min(share, lanes[lane].freeCount, Self.maximumBatch)
      lanes[lane].reservedCount = count
      actions.append(.receive(lane: lane, count: count))
      nextLane = (lane + 1) % lanes.count
      ready = ready.dropFirst()
    }
    return actions
  }
}
