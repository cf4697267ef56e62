internal import StrictJSON
internal import Synchronization

/// The events of channels, patterns and groups, from its beginning until it is cancelled.
///
/// It is for one task. It asks the server when the task asks for the next event, so a slow application is slow for the
/// server too, and loses nothing: the next poll continues from the place of the last event. After a lost connection it
/// tries again, without end.
///
/// The sequence ends after ``unsubscribe()``. It throws `forbidden` when the access ends, and the errors of challenges;
/// what was lost in between comes if it is iterated again.
public final class PubNubSubscription: AsyncSequence, Sendable {
  /// What the sequence gives.
  public typealias Element = PubNubEvent

  /// What to subscribe to.
  struct Topics: Sendable {
    let channels: [String]
    let groups: [String]
    let filter: String?

    var names: String { (channels + groups).joined(separator: ",") }
  }

  private struct State {
    /// The place from which it continues; nil before the first answer.
    var place: (timetoken: Timetoken, region: Int64)?
    var failureCount = 0
    /// How many answers in a row came immediately and had nothing.
    var emptyCount = 0
    var isEnded = false
    /// Events of the last answer that no iterator has taken, the newest first.
    var waiting: [PubNubEvent] = []
    /// The place before the last answer.
    var placeBefore: Timetoken?
    /// The wait and the poll that an iteration waits for.
    var attempt: Task<Result<Bool, MessagingClientError>, Never>?

    /// Keeps events before the place goes behind them.
    mutating func keep(_ events: [PubNubEvent]) {
      placeBefore = place?.timetoken
      waiting = events.reversed()
    }
  }

  let topics: Topics
  private let client: PubNubClient
  private let state: Mutex<State>

  init(_ client: PubNubClient, _ topics: Topics, after timetoken: Timetoken?) {
    self.client = client
    self.topics = topics
    state = Mutex(State(place: timetoken.map { ($0, 0) }))
  }

  /// Ends the sequence, and tells the server that the user has left.
  public func unsubscribe() async throws(MessagingClientError) {
    state.withLock { state in
      state.isEnded = true
      state.attempt?.cancel()
    }
    client.forget(self)
    client.transport.log.unsubscribed(from: topics.names)
    try await client.leave(topics)
  }

  /// The place from which it continues; nil before it has begun.
  ///
  /// It is behind an answer of the server when all events of the answer are taken. So another subscription from here
  /// loses nothing, and can give some events again.
  public var place: Timetoken? {
    state.withLock { $0.waiting.isEmpty ? $0.place?.timetoken : $0.placeBefore }
  }

  /// Begins, or goes on at the place where the last iteration ended.
  public func makeAsyncIterator() -> Iterator { Iterator(self) }

  /// The iteration of one task.
  public struct Iterator: AsyncIteratorProtocol {
    private let subscription: PubNubSubscription

    init(_ subscription: PubNubSubscription) { self.subscription = subscription }

    /// The next event; nil at the end.
    ///
    /// - Throws: `forbidden`, `refused`, `unauthenticated` and other errors that do not pass by themselves.
    public mutating func next() async throws(MessagingClientError) -> PubNubEvent? {
      while true {
        if let event = subscription.takeOne() { return event }
        guard try await subscription.poll() else { return nil }
      }
    }
  }

  // MARK: - Polls

  /// A server that has nothing holds a poll longer than this.
  private static let shortestHold = Duration.seconds(1)

  /// Takes the first of the events that wait.
  private func takeOne() -> PubNubEvent? {
    state.withLock { $0.isEnded ? nil : $0.waiting.popLast() }
  }

  /// Takes all events that wait.
  func takeAll() -> [PubNubEvent] {
    state.withLock { state in
      guard !state.isEnded else { return [] }
      defer { state.waiting = [] }
      return state.waiting.reversed()
    }
  }

  /// Waits for an answer, whose events then wait; false at the end.
  func poll() async throws(MessagingClientError) -> Bool {
    let attempt = Task {
      do throws(MessagingClientError) {
        return Result<_, MessagingClientError>.success(try await self.attempt())
      } catch {
        return .failure(error)
      }
    }
    let isEnded = state.withLock { state in
      state.attempt = attempt
      return state.isEnded
    }
    if isEnded { attempt.cancel() }
    return try await withTaskCancellationHandler {
      await attempt.value
    } onCancel: {
      attempt.cancel()
    }.get()
  }

  /// Waits after failures, and polls once; false if it is cancelled.
  private func attempt() async throws(MessagingClientError) -> Bool {
    let (place, failureCount) = state.withLock { ($0.place, $0.failureCount) }
    if Task.isCancelled { return false }
    // The application has seen the failure before this wait.
    let waitCount = failureCount + state.withLock { $0.emptyCount }
    guard await wait(afterFailures: waitCount) else { return false }
    let start = ContinuousClock.now
    do throws(MessagingClientError) {
      let response = try await client.poll(
        topics, after: place, timeout: client.configuration.pollTime)
      let isShort = ContinuousClock.now - start < Self.shortestHold
      if Task.isCancelled { return false }
      let value = try client.object(response, "the subscription was refused")
      guard let timetoken = Timetoken(value.member("t")?.member("t")?.string),
        let region = value.member("t")?.member("r")?.integer
      else { throw MessagingClientError(.invalidAnswer, "the answer to a poll has no timetoken") }
      let events = (value.member("m")?.elements ?? [])
        .compactMap { PubNubEvent($0, client.configuration.cipher) }
      let status: PubNubStatus? =
        failureCount > 0 ? .reconnected : place == nil || place?.region == 0 ? .connected : nil
      state.withLock { state in
        state.keep((status.map { [.status($0)] } ?? []) + events)
        // A poll never goes back.
        if timetoken > state.place?.timetoken ?? timetoken || state.place == nil {
          state.place = (timetoken, region)
        }
        state.failureCount = 0
        state.emptyCount = events.isEmpty && isShort && place != nil ? state.emptyCount + 1 : 0
      }
      if let status {
        client.transport.log.connected()
        if status == .connected { client.transport.log.subscribed(to: topics.names) }
      }
      return true
    } catch {
      return try recover(error)
    }
  }

  /// False if the task is cancelled.
  private func wait(afterFailures count: Int) async -> Bool {
    guard count > 0 else { return true }
    var generator = SystemRandomNumberGenerator()
    let wait = client.configuration.backoff.wait(afterFailures: count, &generator)
    client.transport.log.waits(wait, failureCount: count)
    return (try? await Task.sleep(for: wait)) != nil
  }

  /// Notes a failure that can pass.
  private func recover(_ error: MessagingClientError) throws(MessagingClientError) -> Bool {
    let status: PubNubStatus
    switch error.code {
    case .cancelled: return false
    case .busy: status = .waiting
    case .cannotConnect, .outcomeUnknown, .unavailable, .invalidAnswer: status = .disconnected
    default:
      client.transport.log.givesUp(error)
      throw error
    }
    let count = state.withLock { state in
      state.failureCount += 1
      if state.failureCount == 1 { state.keep([.status(status)]) }
      return state.failureCount
    }
    client.transport.log.fails(error, failureCount: count)
    return true
  }
}

extension PubNubClient {
  /// Subscribes to channels, patterns such as `a.*`, and groups.
  ///
  /// Nothing is sent before the first event is asked for. Each subscription polls by itself.
  ///
  /// - Parameters:
  ///   - withPresence: also who comes and goes.
  ///   - filter: an expression that messages must fulfil, as PubNub's.
  ///   - timetoken: continues from there; nil for what is published from now on.
  /// - Throws: `invalidArgument` if there is neither a channel nor a group.
  public func subscribe(
    to channels: [String], groups: [String] = [], withPresence: Bool = false, filter: String? = nil,
    after timetoken: Timetoken? = nil
  ) throws(MessagingClientError) -> PubNubSubscription {
    guard !channels.isEmpty || !groups.isEmpty else {
      throw MessagingClientError(.invalidArgument, "a subscription needs a channel or a group")
    }
    func names(_ names: [String]) -> [String] {
      withPresence ? names.flatMap { [$0, "\($0)-pnpres"] } : names
    }
    let subscription = PubNubSubscription(
      self,
      PubNubSubscription.Topics(channels: names(channels), groups: names(groups), filter: filter),
      after: timetoken)
    subscriptions.withLock { subscriptions in
      subscriptions = subscriptions.filter { $0.value.subscription != nil }
      subscriptions[ObjectIdentifier(subscription)] = WeakSubscription(subscription: subscription)
    }
    return subscription
  }

  /// Ends all subscriptions of the client.
  ///
  /// - Throws: the first error of telling the server; all subscriptions have ended then too.
  public func unsubscribeAll() async throws(MessagingClientError) {
    let all = subscriptions.withLock { $0.values.compactMap(\.subscription) }
    var failure: MessagingClientError?
    for subscription in all {
      do throws(MessagingClientError) {
        try await subscription.unsubscribe()
      } catch {
        failure = failure ?? error
      }
    }
    if let failure { throw failure }
  }

  func forget(_ subscription: PubNubSubscription) {
    _ = subscriptions.withLock { $0.removeValue(forKey: ObjectIdentifier(subscription)) }
  }

  /// Names with commas between them, as paths have them.
  static func list(_ names: [String]) -> String {
    names.isEmpty ? "," : names.map(RequestTarget.encode).joined(separator: ",")
  }

  func poll(
    _ topics: PubNubSubscription.Topics, after place: (timetoken: Timetoken, region: Int64)?,
    timeout: Duration
  ) async throws(MessagingClientError) -> ClientResponse {
    var target = RequestTarget(
      path:
        "/v2/subscribe/\(RequestTarget.encode(configuration.subscribeKey))/\(Self.list(topics.channels))/0"
    )
    target.add("tt", place.map { "\($0.timetoken)" } ?? "0")
    target.add("tr", place.map { "\($0.region)" })
    if !topics.groups.isEmpty { target.add("channel-group", topics.groups.joined(separator: ",")) }
    target.add("filter-expr", topics.filter)
    target.add("heartbeat", "\(configuration.presenceTime.components.seconds)")
    return try await call(target, timeout: timeout)
  }

  func leave(_ topics: PubNubSubscription.Topics) async throws(MessagingClientError) {
    let key = RequestTarget.encode(configuration.subscribeKey)
    var target = RequestTarget(
      path: "/v2/presence/sub-key/\(key)/channel/\(Self.list(topics.channels))/leave")
    if !topics.groups.isEmpty { target.add("channel-group", topics.groups.joined(separator: ",")) }
    _ = try object(try await call(target), "the server was not told of the end of a subscription")
  }
}
