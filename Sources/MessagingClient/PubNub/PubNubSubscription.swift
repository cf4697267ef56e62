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
    state.withLock { $0.isEnded = true }
    client.forget(self)
    client.transport.log.unsubscribed(from: topics.names)
    try await client.leave(topics)
  }

  /// The place from which it continues; nil before it has begun.
  public var place: Timetoken? { state.withLock { $0.place?.timetoken } }

  /// Begins, or goes on at the place where the last iteration ended.
  public func makeAsyncIterator() -> Iterator { Iterator(self) }

  /// The iteration of one task.
  public struct Iterator: AsyncIteratorProtocol {
    private let subscription: PubNubSubscription
    private var waiting: [PubNubEvent] = []

    init(_ subscription: PubNubSubscription) { self.subscription = subscription }

    /// The next event; nil at the end.
    ///
    /// - Throws: `forbidden`, `refused`, `unauthenticated` and other errors that do not pass by themselves.
    public mutating func next() async throws(MessagingClientError) -> PubNubEvent? {
      while waiting.isEmpty {
        guard let events = try await subscription.poll() else { return nil }
        waiting = events.reversed()
      }
      return waiting.popLast()
    }
  }

  // MARK: - Polls

  /// A server that has nothing holds a poll longer than this.
  private static let shortestHold = Duration.seconds(1)

  /// The next events; nil at the end.
  func poll() async throws(MessagingClientError) -> [PubNubEvent]? {
    let (place, failureCount, isEnded) = state.withLock { ($0.place, $0.failureCount, $0.isEnded) }
    if isEnded || Task.isCancelled { return nil }
    // The application has seen the failure before this wait.
    let waitCount = failureCount + state.withLock { $0.emptyCount }
    guard await wait(afterFailures: waitCount), !state.withLock({ $0.isEnded }) else { return nil }
    let start = ContinuousClock.now
    do throws(MessagingClientError) {
      let response = try await client.poll(
        topics, after: place, timeout: client.configuration.pollTime)
      if state.withLock({ $0.isEnded }) { return nil }
      let value = try client.object(response, "the subscription was refused")
      guard let timetoken = Timetoken(value.member("t")?.member("t")?.string),
        let region = value.member("t")?.member("r")?.integer
      else { throw MessagingClientError(.invalidAnswer, "the answer to a poll has no timetoken") }
      let events = (value.member("m")?.elements ?? [])
        .compactMap { PubNubEvent($0, client.configuration.cipher) }
      state.withLock { state in
        // A poll never goes back.
        if timetoken > state.place?.timetoken ?? timetoken || state.place == nil {
          state.place = (timetoken, region)
        }
        state.failureCount = 0
        let isIdle = events.isEmpty && ContinuousClock.now - start < Self.shortestHold
        state.emptyCount = isIdle && place != nil ? state.emptyCount + 1 : 0
      }
      let status: PubNubStatus? =
        failureCount > 0 ? .reconnected : place == nil || place?.region == 0 ? .connected : nil
      if let status {
        client.transport.log.connected()
        if status == .connected { client.transport.log.subscribed(to: topics.names) }
      }
      return (status.map { [.status($0)] } ?? []) + events
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
  private func recover(
    _ error: MessagingClientError
  ) throws(MessagingClientError) -> [PubNubEvent]? {
    let status: PubNubStatus
    switch error.code {
    case .cancelled: return nil
    case .busy: status = .waiting
    case .cannotConnect, .outcomeUnknown, .unavailable, .invalidAnswer: status = .disconnected
    default:
      client.transport.log.givesUp(error)
      throw error
    }
    let count = state.withLock { state in
      state.failureCount += 1
      return state.failureCount
    }
    client.transport.log.fails(error, failureCount: count)
    return count == 1 ? [.status(status)] : []
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
  public func unsubscribeAll() async throws(MessagingClientError) {
    let all = subscriptions.withLock { $0.values.compactMap(\.subscription) }
    for subscription in all { try await subscription.unsubscribe() }
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
