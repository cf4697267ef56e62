internal import MessagingQueue

/// The identity of a subscriber that waits.
package struct SubscriberID: Sendable, Hashable {
  let number: UInt64
}

/// Decides which subscriber gets which messages, from memory.
///
/// It does no I/O. A subscriber polls: it gets all its messages after a place, or waits for the next ones and is then
/// forgotten.
struct Distributor {
  /// What to do for a subscriber that polls.
  enum Answer {
    /// Give it these.
    case events(Events)
    /// Wait: ``append(_:)`` will name it.
    case wait
    /// Read the log after its place, because the window begins later.
    case readLog
  }

  private struct Subscriber {
    let subscription: Subscription
    let place: Timetoken
    let maximumCount: Int
  }

  private(set) var window: EventWindow
  private var subscribers: [SubscriberID: Subscriber] = [:]
  private var waiting: [Channel: Set<SubscriberID>] = [:]

  init(_ window: EventWindow) {
    self.window = window
  }

  var waitingCount: Int { subscribers.count }

  /// Answers a subscriber, or lets it wait.
  mutating func poll(
    _ id: SubscriberID, _ subscription: Subscription, after place: Timetoken, maximumCount: Int
  ) -> Answer {
    guard
      let events = window.events(for: subscription, after: place, maximumCount: maximumCount)
    else { return .readLog }
    if !events.events.isEmpty { return .events(events) }
    subscribers[id] = Subscriber(
      subscription: subscription, place: place, maximumCount: maximumCount)
    for topic in subscription.sources.keys { waiting[topic, default: []].insert(id) }
    return .wait
  }

  /// Takes the next part of the log.
  ///
  /// - Returns: what the waiting subscribers get, each of which is forgotten.
  mutating func append(_ tail: LogTail) -> [(id: SubscriberID, events: Events)] {
    window.append(tail)
    var woken: [SubscriberID: Events] = [:]
    for message in tail.messages {
      for id in Set(message.channel.topics.flatMap { waiting[$0] ?? [] }) {
        guard let subscriber = subscribers[id], message.timetoken > subscriber.place else {
          continue
        }
        _ = woken[id, default: Events(end: tail.end)].append(
          message, for: subscriber.subscription, maximumCount: subscriber.maximumCount)
      }
    }
    for id in woken.keys { remove(id) }
    return woken.map { ($0.key, $0.value) }
  }

  /// Forgets a subscriber.
  mutating func remove(_ id: SubscriberID) {
    guard let subscriber = subscribers.removeValue(forKey: id) else { return }
    for topic in subscriber.subscription.sources.keys {
      waiting[topic]?.remove(id)
      if waiting[topic]?.isEmpty == true { waiting[topic] = nil }
    }
  }
}
