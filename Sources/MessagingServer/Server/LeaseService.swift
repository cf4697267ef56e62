internal import MessagingQueue
internal import Synchronization

/// Leases messages for subscribers that stay connected, and keeps their leases alive.
///
/// Subscribers of one consumer share a receive, which divides its messages among them in turn. A consumer has a task only
/// while a subscriber can take a message.
final class LeaseService: Sendable {
  /// How long a lease lasts: messages of a server that was killed come again after that.
  static let leaseTime = Duration.seconds(30)
  /// The most messages of one receive.
  private static let receiveCount = 256

  /// Takes leased messages; it must not block.
  typealias Taker = @Sendable ([Delivery]) -> Void

  /// Names a subscriber.
  struct ID: Sendable, Hashable {
    fileprivate let queue: Queue
    fileprivate let number: UInt64
  }

  fileprivate struct Queue: Sendable, Hashable {
    let channel: Channel
    let consumer: Consumer
  }

  private struct Subscriber {
    let number: UInt64
    /// How many messages it can take now.
    var credit: Int
    let take: Taker
  }

  private struct Subscribers {
    var all: [Subscriber] = []
    /// Who gets the next message, unless it can take none.
    var next = 0
    var task: (number: UInt64, Task<Void, Never>)?

    var credit: Int { all.reduce(0) { $0 + $1.credit } }

    /// Divides messages in turn.
    mutating func divide(
      _ deliveries: [Delivery]
    ) -> (shares: [(Taker, [Delivery])], rest: [Delivery]) {
      var shares = [[Delivery]](repeating: [], count: all.count)
      var rest = deliveries[...]
      var passedCount = 0
      while passedCount < all.count, let delivery = rest.first {
        next = next < all.count ? next : 0
        if all[next].credit > 0 {
          all[next].credit -= 1
          shares[next].append(delivery)
          rest.removeFirst()
          passedCount = 0
        } else {
          passedCount += 1
        }
        next += 1
      }
      return (zip(all, shares).filter { !$1.isEmpty }.map { ($0.take, $1) }, Array(rest))
    }
  }

  private struct State {
    var queues: [Queue: Subscribers] = [:]
    /// Leases that began since the last extension, and earlier ones.
    var young: Set<LeaseToken> = []
    var old: Set<LeaseToken> = []
    var lastNumber: UInt64 = 0
    var isClosed = false

    mutating func makeNumber() -> UInt64 {
      lastNumber += 1
      return lastNumber
    }
  }

  private let engine: MessagingEngine
  private let state = Mutex(State())

  init(_ engine: MessagingEngine) { self.engine = engine }

  /// A cluster can have shorter leases.
  private var leaseTime: Duration { min(Self.leaseTime, engine.longestLease) }

  /// How many leases subscribers hold.
  var count: Int { state.withLock { $0.young.count + $0.old.count } }

  // MARK: - Subscribers

  /// Adds a subscriber that can take `credit` messages.
  func add(
    _ channel: Channel, _ consumer: Consumer, credit: Int, _ take: @escaping Taker
  ) -> ID {
    let queue = Queue(channel: channel, consumer: consumer)
    return state.withLock { state in
      let number = state.makeNumber()
      state.queues[queue, default: Subscribers()].all.append(
        Subscriber(number: number, credit: credit, take: take))
      start(queue, &state)
      return ID(queue: queue, number: number)
    }
  }

  /// Lets a subscriber take more messages.
  func add(credit: Int, to id: ID) {
    state.withLock { state in
      guard let index = state.queues[id.queue]?.all.firstIndex(where: { $0.number == id.number })
      else { return }
      state.queues[id.queue]?.all[index].credit += credit
      start(id.queue, &state)
    }
  }

  /// Removes a subscriber; what it holds it must give back.
  func remove(_ id: ID) {
    state.withLock { state in
      guard let index = state.queues[id.queue]?.all.firstIndex(where: { $0.number == id.number })
      else { return }
      state.queues[id.queue]?.all.remove(at: index)
      guard let rest = state.queues[id.queue], rest.credit == 0 else { return }
      rest.task?.1.cancel()
      state.queues[id.queue]?.task = nil
      if rest.all.isEmpty { state.queues[id.queue] = nil }
    }
  }

  /// Starts a task unless there is one, or nothing to do.
  private func start(_ queue: Queue, _ state: inout State) {
    guard !state.isClosed, let subscribers = state.queues[queue], subscribers.task == nil,
      subscribers.credit > 0
    else { return }
    let number = state.makeNumber()
    state.queues[queue]?.task = (number, Task { await self.receive(queue, number) })
  }

  /// Receives as long as this is the task of the queue, and a subscriber can take a message.
  private func receive(_ queue: Queue, _ number: UInt64) async {
    while let count = wantedCount(queue, number) {
      do throws(EngineError) {
        let deliveries = try await engine.receive(
          from: queue.channel, for: queue.consumer, maximumCount: count, lease: leaseTime,
          waitingUpTo: .seconds(3600))
        await divide(deliveries, queue)
      } catch {
        if [.cancelled, .stopped, .vaultLocked].contains(error.code) { return }
        // For example a full disk: the messages wait.
        try? await Task.sleep(for: .seconds(1))
      }
    }
  }

  private func wantedCount(_ queue: Queue, _ number: UInt64) -> Int? {
    state.withLock { state in
      guard let subscribers = state.queues[queue], subscribers.task?.number == number else {
        return nil
      }
      guard subscribers.credit > 0 else {
        state.queues[queue]?.task = nil
        return nil
      }
      return min(subscribers.credit, Self.receiveCount)
    }
  }

  private func divide(_ deliveries: [Delivery], _ queue: Queue) async {
    let (shares, rest) = state.withLock { state in
      let (shares, rest) = state.queues[queue]?.divide(deliveries) ?? ([], deliveries)
      for (_, deliveries) in shares { state.young.formUnion(deliveries.map(\.token)) }
      return (shares, rest)
    }
    for (take, deliveries) in shares { take(deliveries) }
    // Their subscriber left while they were received.
    await release(rest.map(\.token), countsAttempt: false)
  }

  // MARK: - Leases

  /// Forgets leases that were settled.
  func forget(_ tokens: [LeaseToken]) {
    state.withLock { state in
      state.young.subtract(tokens)
      state.old.subtract(tokens)
    }
  }

  /// Returns messages to their consumers; after an error they return when their leases end.
  func release(_ tokens: [LeaseToken], countsAttempt: Bool) async {
    if tokens.isEmpty { return }
    forget(tokens)
    _ = try? await engine.release(
      tokens, reason: "its receiver left", countsAttempt: countsAttempt)
  }

  /// Extends leases until the task is cancelled: all in one operation.
  func run() async throws(EngineError) {
    // A lease is extended when it is between one and two of these old.
    let interval = leaseTime / 3
    var pause = interval
    while !Task.isCancelled {
      try? await Task.sleep(for: pause)
      pause = interval
      let tokens = state.withLock { state in
        state.old.formUnion(state.young)
        state.young = []
        return Array(state.old)
      }
      if tokens.isEmpty { continue }
      do throws(EngineError) {
        try await engine.extend(tokens, by: leaseTime)
      } catch {
        if [.stopped, .vaultLocked].contains(error.code) { throw error }
        // The owner of a cluster's leases can be about to change.
        if error.code == .busy { pause = min(interval, .seconds(1)) }
        // Their subscribers learn it when they settle them.
        forget(error.unknownLeases)
      }
    }
  }

  /// Leases nothing more.
  func close() {
    let tasks = state.withLock { state in
      state.isClosed = true
      defer { state.queues = [:] }
      return state.queues.values.compactMap(\.task?.1)
    }
    for task in tasks { task.cancel() }
  }
}
