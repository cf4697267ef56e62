/// How many more messages each queue of a connection can lease.
///
/// A subscription can hold as many as its prefetch. Few of them are leased before the client has read those before, so
/// that the messages of a client that does not read stay on the disk, and other clients can get them.
struct STOMPCredit {
  private struct Queue {
    /// Those that the subscription can still hold.
    var freeCount: Int
    /// Those that can be leased, or are on their way to the client.
    var unreadCount = 0
  }

  private let unreadCount: Int
  private var queues: [Int: Queue] = [:]

  /// - Parameter unreadCount: the most messages of all queues that the client has not read; each queue can have one.
  init(unreadCount: Int) { self.unreadCount = unreadCount }

  mutating func open(_ subscription: Int, prefetchCount: Int) {
    queues[subscription] = Queue(freeCount: prefetchCount)
  }

  mutating func close(_ subscription: Int) { queues[subscription] = nil }

  /// The client has read a message.
  mutating func didSend(of subscription: Int) { queues[subscription]?.unreadCount -= 1 }

  /// Messages are settled.
  mutating func didSettle(_ count: Int, of subscription: Int) {
    queues[subscription]?.freeCount += count
  }

  /// Takes what a queue can lease now.
  mutating func take(_ subscription: Int) -> Int {
    guard let queue = queues[subscription] else { return 0 }
    let share = max(1, unreadCount / queues.count)
    let count = max(0, min(queue.freeCount, share - queue.unreadCount))
    queues[subscription]?.freeCount -= count
    queues[subscription]?.unreadCount += count
    return count
  }
}
