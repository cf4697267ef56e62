internal import MessagingQueue

/// The identity of a subscriber that waits.
package struct SubscriberID: Sendable, Hashable {
  let number: UInt64
}

/// Decides which subscriber gets which events, from memory.
///
/// It does no I/O. A subscriber polls: it gets all its events after a place, or waits for the next ones and is then
/// forgotten. A feed gets the events of its channels as they come, until it ends.
struct Distributor {
  /// What to do for a subscriber that polls.
  enum Answer {
    /// Give it these.
    case events(Events)
    /// Wait: a later distribution will name it.
    case wait
    /// Read the log after this place, because the window begins later, and call ``take(_:for:_:known:_:)``.
    ///
    /// A read that begins now has all messages up to `known`, also if its end is before that.
    case readLog(after: Timetoken, known: Timetoken)
  }

  /// Who gets what.
  struct Distribution {
    /// Waiting subscribers, each of which is forgotten.
    var woken: [(id: SubscriberID, events: Events)] = []
    /// Feeds, each with the events of its channels.
    var fed: [SubscriberID: [LiveEvent]] = [:]
    /// Senders whose events have their places.
    var sent: [(id: UInt64, timetokens: [Timetoken])] = []
  }

  private struct Subscriber {
    let subscription: Subscription
    var place: Timetoken
    let limits: Events.Limits
  }

  private(set) var window: EventWindow
  private var places: EphemeralPlaces
  private let limits: EphemeralPlaces.Limits
  private var subscribers: [SubscriberID: Subscriber] = [:]
  private var waiting = WaitingList()
  /// The channels of each feed.
  private var feeds: [SubscriberID: Set<Channel>] = [:]
  /// The feeds of each channel.
  private var followers: [Channel: Set<SubscriberID>] = [:]

  /// - Parameter window: empty, at the end of the log.
  init(_ window: EventWindow, _ limits: EphemeralPlaces.Limits = EphemeralPlaces.Limits()) {
    self.window = window
    self.limits = limits
    places = EphemeralPlaces(at: window.end, limits)
  }

  var waitingCount: Int { subscribers.count }

  // MARK: Subscribers

  /// Answers a subscriber, or lets it wait.
  mutating func poll(
    _ id: SubscriberID, _ subscription: Subscription, after place: Timetoken,
    _ limits: Events.Limits
  ) -> Answer {
    guard let events = window.events(for: subscription, after: place, limits) else {
      return .readLog(after: place, known: window.end)
    }
    if !events.events.isEmpty { return .events(events) }
    subscribers[id] = Subscriber(subscription: subscription, place: place, limits: limits)
    waiting.insert(id, subscription)
    return .wait
  }

  /// Answers a subscriber with a part of the log that was read for it, as far as the window does not have it.
  ///
  /// The window has events between the messages that the log does not have.
  ///
  /// - Parameter known: that of the answer for which the log was read.
  mutating func take(
    _ tail: LogTail, for id: SubscriberID, _ subscription: Subscription, known: Timetoken,
    _ limits: Events.Limits
  ) -> Answer {
    let end = min(tail.isAtEnd ? max(tail.end, known) : tail.end, window.start)
    var events = Events(end: end, limits)
    for message in tail.messages where message.timetoken <= end {
      let event = LiveEvent(message, isStored: true)
      guard let source = subscription.source(of: event.topics) else { continue }
      _ = events.append(event, through: source)
    }
    if !events.events.isEmpty { return .events(events) }
    return poll(id, subscription, after: end, limits)
  }

  /// Forgets the subscribers that wait in one of the ranges.
  ///
  /// - Returns: for each, an answer without events at its place.
  mutating func removeWaiting(in ranges: [PlaceRange]) -> [(SubscriberID, Events)] {
    let affected = subscribers.filter { subscriber in
      ranges.contains { $0.affects(subscriber.value.place) }
    }
    for id in affected.keys { remove(id) }
    return affected.map { ($0.key, Events(end: $0.value.place, $0.value.limits)) }
  }

  /// Forgets a subscriber.
  mutating func remove(_ id: SubscriberID) {
    guard let subscriber = subscribers.removeValue(forKey: id) else { return }
    waiting.remove(id, subscriber.subscription)
  }

  // MARK: Feeds

  /// Takes a feed without channels.
  mutating func openFeed(_ id: SubscriberID) { feeds[id] = [] }

  /// Gives a feed the events of a channel from now on.
  mutating func add(_ channel: Channel, to id: SubscriberID) {
    guard feeds[id]?.insert(channel).inserted == true else { return }
    followers[channel, default: []].insert(id)
  }

  mutating func remove(_ channel: Channel, from id: SubscriberID) {
    guard feeds[id]?.remove(channel) != nil else { return }
    followers[channel]?.remove(id)
    if followers[channel]?.isEmpty == true { followers[channel] = nil }
  }

  /// Forgets a feed.
  mutating func closeFeed(_ id: SubscriberID) {
    for channel in feeds[id] ?? [] { remove(channel, from: id) }
    feeds[id] = nil
  }

  // MARK: Events

  /// The place after which the log is to be read next.
  var readPlace: Timetoken { Timetoken(unchecked: places.read) }

  /// Whether events wait for places that must be reserved.
  var needsReservation: Bool { places.needsReservation }

  /// Begins again at a place of the log before the window's end, because the log has other messages after it now.
  ///
  /// Waiting subscribers and feeds get all events after it, also those that they had before.
  ///
  /// - Returns: senders whose events have lost their wait for places.
  mutating func startAgain(at place: Timetoken) -> [UInt64] {
    for (id, subscriber) in subscribers where subscriber.place <= window.end {
      subscribers[id]?.place = min(subscriber.place, place)
    }
    window.startAgain(at: place)
    let senders = places.failWaiting()
    places = EphemeralPlaces(at: place, limits)
    return senders
  }

  /// Takes reserved places: see ``EphemeralPlaces/reserve(_:)``.
  mutating func reserve(_ range: ClosedRange<Int64>) { places.reserve(range) }

  /// Forgets the events that wait for places.
  ///
  /// - Returns: their senders.
  mutating func failWaiting() -> [UInt64] { places.failWaiting() }

  /// Takes the part of the log after ``readPlace``.
  mutating func take(_ tail: LogTail) -> Distribution { distribute(places.take(tail)) }

  /// Takes events that are not stored, all or none.
  ///
  /// - Returns: who gets what, if they have their places; otherwise nil, and a later distribution names the sender.
  /// - Throws: `busy` if too many wait.
  mutating func send(
    _ messages: [Message], as id: UInt64, now: Int64
  ) throws(EngineError) -> Distribution? {
    switch places.send(messages, as: id, now: now) {
    case .sent(let batch):
      var distribution = distribute(batch)
      distribution.sent = [(id, batch.events.map(\.place))]
      return distribution
    case .wait: return nil
    case .full:
      throw EngineError(
        .busy, "too many events that are not stored wait for their places",
        hint: "send fewer, and try again later")
    }
  }

  private mutating func distribute(_ batch: EphemeralPlaces.Batch) -> Distribution {
    window.append(batch.events, end: Timetoken(unchecked: places.end))
    var woken: [SubscriberID: Events] = [:]
    var fed: [SubscriberID: [LiveEvent]] = [:]
    for event in batch.events {
      for id in followers[event.message.channel] ?? [] { fed[id, default: []].append(event) }
      waiting.forEach(event.topics) { id, source in
        guard let subscriber = subscribers[id], event.place > subscriber.place else { return }
        _ = woken[id, default: Events(end: window.end, subscriber.limits)]
          .append(event, through: source)
      }
    }
    for id in woken.keys { remove(id) }
    return Distribution(
      woken: woken.map { ($0.key, $0.value) }, fed: fed, sent: batch.sent)
  }
}
