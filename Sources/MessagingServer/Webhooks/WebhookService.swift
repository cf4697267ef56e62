internal import AccessControl
internal import ApplicationStore
internal import Foundation
internal import Logging
internal import MessagingQueue
internal import Synchronization

/// Tells webhooks of events, through a channel of the queue for each application.
///
/// A body is a message of that channel, and each webhook is a consumer of it with deliveries of its own, so that a
/// receiver that is slow holds up no other. A receiver gets a body again if the server was killed before it knew the
/// answer.
final class WebhookService: Sendable {
  /// How many deliveries of a webhook run at a time.
  static let deliveryCount = 4
  /// How often a body is offered to the queue before it is lost.
  private static let publishingCount = 10

  /// The channel with the bodies of an application: a name without `/`, which no client of a protocol can have.
  static func channel(of application: ApplicationID) throws(EngineError) -> Channel {
    try Channel("datavault:webhooks:\(application)")
  }

  /// Dead letters leave the queue after 7 days, or when all bodies of the application have 64 MiB.
  static let retention = {
    var retention = Retention()
    retention.maximumAge = .seconds(7 * 86_400)
    retention.maximumByteCount = 64 << 20
    retention.discardsUnacknowledged = true
    return retention
  }()

  private struct Key: Sendable, Hashable {
    let application: ApplicationID
    let webhook: WebhookID
  }

  private struct Lane {
    var record: WebhookRecord
    /// The subscription to the queue; nil while it begins.
    var subscriber: LeaseService.ID?
    /// Whether the last attempt failed, so that the log has one line for many failures.
    var isFailing = false
  }

  private struct Job: Sendable {
    let key: Key
    let delivery: Delivery
  }

  private struct State {
    var collector = WebhookCollector()
    var lanes: [Key: Lane] = [:]
  }

  private let engine: MessagingEngine
  private let leases: LeaseService
  private let directory: ApplicationDirectory
  private let store: ApplicationStore
  private let client: WebhookClient
  private let operations: ServerOperations
  private var logger: Logger { operations.logger }
  private let now: @Sendable () -> Date
  private let state = Mutex(State())
  private let collected = AsyncStream.makeStream(
    of: Void.self, bufferingPolicy: .bufferingNewest(1))
  private let changed = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
  /// As many as the lanes allow.
  private let jobs = AsyncStream.makeStream(of: Job.self)

  init(
    _ engine: MessagingEngine, _ leases: LeaseService, _ directory: ApplicationDirectory,
    _ store: ApplicationStore, _ client: WebhookClient, _ operations: ServerOperations,
    now: @escaping @Sendable () -> Date
  ) {
    self.engine = engine
    self.leases = leases
    self.directory = directory
    self.store = store
    self.client = client
    self.operations = operations
    self.now = now
    takeChanges()
  }

  /// Takes an event; its webhooks are told later.
  func note(_ event: WebhookEvent, of application: ApplicationID) {
    let waits = state.withLock { state in
      state.collector.note(event, of: application, at: .now)
      return state.collector.nextDue != nil
    }
    if waits { collected.continuation.yield() }
  }

  /// Uses the webhooks that the directory has now.
  func takeChanges() {
    let webhooks = directory.webhooks
    state.withLock { state in
      state.collector.setWanted(
        webhooks.mapValues { $0.reduce(into: []) { $0.formUnion($1.events) } })
    }
    changed.continuation.yield()
  }

  /// Publishes and delivers, until the engine stops or the task is cancelled.
  func run() async throws {
    try await withThrowingDiscardingTaskGroup { group in
      group.addTask { try await self.publish() }
      group.addTask { try await self.followChanges() }
      for await job in jobs.stream {
        group.addTask { await self.deliver(job) }
      }
    }
  }

  // MARK: - Publishing

  private func publish() async throws {
    for await _ in collected.stream {
      while state.withLock({ $0.collector.nextDue }) != nil {
        try? await Task.sleep(for: WebhookCollector.collectionTime)
        try await publish(take())
        if Task.isCancelled { return }
      }
    }
  }

  private func take() -> [WebhookCollector.Taken] {
    let time = Int64((now().timeIntervalSince1970 * 1000).rounded(.down))
    return state.withLock { $0.collector.take(at: .now, timeInMilliseconds: time) }
  }

  private func publish(_ all: [WebhookCollector.Taken]) async throws {
    for taken in all {
      if taken.droppedCount > 0 {
        logger.warning(
          "webhooks of application \(taken.application): \(taken.droppedCount) events are lost, because too many wait"
        )
      }
      if taken.bodies.isEmpty { continue }
      let channel = try Self.channel(of: taken.application)
      let messages = taken.bodies.map { Message(channel: channel, payload: $0) }
      // A task of its own: what was taken is still published when the server stops.
      try await Task { try await self.publish(messages, of: taken.application) }.value
    }
  }

  private func publish(_ messages: [Message], of application: ApplicationID) async throws {
    for number in 1...Self.publishingCount {
      do throws(EngineError) {
        try await engine.publish(messages)
        return
      } catch {
        if [.stopped, .vaultLocked].contains(error.code) { throw error }
        // For example a full disk.
        guard number < Self.publishingCount else {
          logger.warning("webhooks of application \(application): events are lost: \(error)")
          return
        }
        try? await Task.sleep(for: .seconds(1))
      }
    }
  }

  // MARK: - Lanes

  private func followChanges() async throws {
    for await _ in changed.stream {
      while !Task.isCancelled {
        do throws(EngineError) {
          try await updateLanes()
          break
        } catch {
          guard engine.refusal() == nil else { throw error }
          logger.debug("webhooks: \(error)")
          try? await Task.sleep(for: .seconds(1))
        }
      }
    }
  }

  /// Begins the deliveries of new webhooks, and ends those of webhooks that are gone.
  private func updateLanes() async throws(EngineError) {
    var current: [Key: WebhookRecord] = [:]
    let webhooks = directory.webhooks
    for (application, records) in webhooks {
      for record in records {
        current[Key(application: application, webhook: record.id)] = record
      }
    }
    let (ended, isNew) = state.withLock { state in
      let ended = state.lanes.filter { current[$0.key] == nil }
      for key in ended.keys { state.lanes[key] = nil }
      var isNew: [Key] = []
      for (key, record) in current {
        if state.lanes[key] == nil { state.lanes[key] = Lane(record: record) }
        state.lanes[key]?.record = record
        if state.lanes[key]?.subscriber == nil { isNew.append(key) }
      }
      return (ended, isNew)
    }
    for (key, lane) in ended {
      if let subscriber = lane.subscriber { leases.remove(subscriber) }
      try await engine.removeConsumer(
        Self.consumer(of: key.webhook), of: Self.channel(of: key.application))
    }
    for application in Set(isNew.map(\.application)) {
      try await prepareChannel(of: application)
    }
    for key in isNew { try begin(key) }
  }

  private static func consumer(of webhook: WebhookID) throws(EngineError) -> Consumer {
    try Consumer(webhook.description)
  }

  /// Bounds the channel, and removes the consumers of webhooks that were removed while no server ran.
  private func prepareChannel(of application: ApplicationID) async throws(EngineError) {
    let channel = try Self.channel(of: application)
    if try await engine.retention(of: channel) != Self.retention {
      try await engine.setRetention(Self.retention, of: channel)
    }
    let consumers = try await engine.consumers(of: channel)
    // Read after them: another node of a cluster adds a webhook before its consumer.
    guard let records = try? await store.webhooks(of: application) else { return }
    let names = Set(records.map(\.id.description))
    for consumer in consumers where !names.contains(consumer.name) {
      try await engine.removeConsumer(consumer, of: channel)
    }
  }

  private func begin(_ key: Key) throws(EngineError) {
    let subscriber = leases.add(
      try Self.channel(of: key.application), try Self.consumer(of: key.webhook),
      credit: Self.deliveryCount
    ) { [jobs] deliveries in
      for delivery in deliveries { jobs.continuation.yield(Job(key: key, delivery: delivery)) }
    }
    state.withLock { $0.lanes[key]?.subscriber = subscriber }
  }

  // MARK: - Delivering

  private enum Outcome {
    /// It was delivered, or has nothing for this webhook.
    case done
    case again(after: Duration, reason: String)
    case dead(reason: String)
    /// The server stops.
    case interrupted
  }

  private func deliver(_ job: Job) async {
    let outcome = await outcome(of: job)
    // A task of its own: what came of it is still stored when the server stops.
    await Task { await settle(job, outcome) }.value
  }

  private func outcome(of job: Job) async -> Outcome {
    guard let entry = directory.application(job.key.application),
      let record = state.withLock({ $0.lanes[job.key]?.record })
    else { return .done }
    guard let body = WebhookBody(job.delivery.payload) else {
      return .dead(reason: "it is not the body of a webhook")
    }
    let made = Date(timeIntervalSince1970: Double(body.timeInMilliseconds) / 1000)
    // Events from before the webhook was added are not for it.
    guard made >= record.created, let bytes = body.bytes(of: record.events) else { return .done }
    guard WebhookSchedule.allowsAttempt(atAge: age(since: made)) else {
      return .dead(reason: "it could not be delivered in time")
    }
    do {
      try await client.post(
        bytes, to: record.url, headers: headers(bytes, of: entry))
      report(job.key, nil)
      return .done
    } catch is CancellationError {
      return .interrupted
    } catch {
      let failure = "\(error as? WebhookFailure ?? .unreachable)"
      report(job.key, failure)
      let delay = WebhookSchedule.delay(
        afterAttempt: job.delivery.attempt, atAge: age(since: made))
      return delay.map { .again(after: $0, reason: failure) } ?? .dead(reason: failure)
    }
  }

  private func age(since made: Date) -> Duration { .seconds(now().timeIntervalSince(made)) }

  /// A receiver checks the type as it is, without a charset.
  private func headers(
    _ body: [UInt8], of entry: DirectoryEntry
  ) throws -> [(String, String)] {
    [
      ("Content-Type", "application/json"), ("User-Agent", "datavaultd"),
      ("X-Pusher-Key", entry.record.subscribeKey),
      (
        "X-Pusher-Signature",
        try PusherSignature.ofWebhook(body, under: entry.application)
      ),
    ]
  }

  /// Writes a line when a webhook begins to fail, and when it works again.
  private func report(_ key: Key, _ failure: String?) {
    operations.metrics?.countWebhook(isDelivered: failure == nil)
    let wasFailing = state.withLock { state in
      let wasFailing = state.lanes[key]?.isFailing
      state.lanes[key]?.isFailing = failure != nil
      return wasFailing
    }
    guard let wasFailing, wasFailing != (failure != nil) else { return }
    let name = "webhook \(key.webhook) of application \(key.application)"
    if let failure {
      logger.warning("\(name) fails: \(failure)")
    } else {
      logger.notice("\(name) works again")
    }
  }

  private func settle(_ job: Job, _ outcome: Outcome) async {
    let token = job.delivery.token
    do throws(EngineError) {
      switch outcome {
      case .done: try await engine.acknowledge(token)
      case .again(let delay, let reason):
        try await engine.release(token, after: delay, reason: reason)
      case .dead(let reason): try await engine.reject(token, reason: reason)
      case .interrupted: try await engine.release(token, countsAttempt: false)
      }
    } catch {
      // The lease ends, and the delivery comes again.
      logger.debug("webhooks: \(error)")
    }
    leases.forget([token])
    if let subscriber = state.withLock({ $0.lanes[job.key]?.subscriber }) {
      leases.add(credit: 1, to: subscriber)
    }
  }
}
