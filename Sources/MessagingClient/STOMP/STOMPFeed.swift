internal import Synchronization

/// What a subscription has received, and its application has not taken.
final class STOMPFeed: Sendable {
  /// A message as it came.
  struct Delivery: Sendable {
    let frame: STOMPFrame
    /// The connection that it came by: another one cannot settle it.
    let generation: UInt64
  }

  enum Item: Sendable {
    case status(STOMPEvent.Status)
    case message(Delivery)
    case end(MessagingClientError?)
  }

  private struct State {
    var byteCount = 0
    var messageCount = 0
    var generation: UInt64 = 0
    var status: STOMPEvent.Status?
    var isEnded = false
  }

  /// Names the subscription in all connections of the client.
  let number: UInt64
  let destination: String
  let mode: STOMPAcknowledgeMode
  let prefetchCount: Int?
  private let limit: Int
  private let inbox = Inbox<Item>()
  private let state = Mutex(State())

  /// More than this many times the limit ends a subscription, because the client cannot keep all of it.
  private static let maximumFactor = 16

  init(
    _ number: UInt64, _ destination: String, _ mode: STOMPAcknowledgeMode, prefetchCount: Int?,
    limit: Int
  ) {
    self.number = number
    self.destination = destination
    self.mode = mode
    self.prefetchCount = prefetchCount
    self.limit = limit
  }

  /// The frame that subscribes.
  var subscribeFrame: STOMPFrame {
    var frame = STOMPFrame(
      "SUBSCRIBE", [("id", "\(number)"), ("destination", destination), ("ack", mode.rawValue)])
    if let prefetchCount { frame.append("prefetch-count", "\(prefetchCount)") }
    return frame
  }

  // MARK: - What the client puts in

  /// How many messages can wait whatever their size: those that the application has asked for.
  private var freeCount: Int { mode == .auto ? 0 : prefetchCount ?? 0 }

  /// Whether the connection must wait for the application.
  var isFull: Bool {
    state.withLock { $0.messageCount > freeCount && $0.byteCount > limit }
  }

  /// - Returns: false if too much waits.
  func put(_ frame: STOMPFrame, generation: UInt64) -> Bool {
    let byteCount = frame.byteCount
    let hasRoom = state.withLock { state in
      state.generation = generation
      guard state.messageCount < freeCount || state.byteCount <= limit * Self.maximumFactor else {
        return false
      }
      state.byteCount += byteCount
      state.messageCount += 1
      return true
    }
    guard hasRoom else { return false }
    _ = inbox.put(
      .message(Delivery(frame: frame, generation: generation)), byteCount: byteCount)
    return true
  }

  /// Adds a change of the status.
  func put(_ status: STOMPEvent.Status) {
    let isChange = state.withLock { state in
      defer { state.status = status }
      return state.status != status
    }
    if isChange { _ = inbox.put(.status(status), byteCount: 0) }
  }

  /// The connection is lost: the server gives what waits for an acknowledgement again.
  func lost(_ generation: UInt64, _ status: STOMPEvent.Status) {
    state.withLock { $0.generation = generation + 1 }
    put(status)
  }

  func end(_ error: MessagingClientError?) {
    state.withLock { $0.isEnded = true }
    inbox.end(with: .end(error))
  }

  // MARK: - What the application takes

  /// The next item, and whether the connection can be read again; nil if the task is cancelled.
  func next() async -> (item: Item, readsOn: Bool)? {
    while let item = await inbox.next() {
      guard case .message(let delivery) = item else { return (item, false) }
      let byteCount = delivery.frame.byteCount
      let (isCurrent, readsOn) = state.withLock { state in
        // The connection waits until half of it is taken.
        let wasFull = state.messageCount > freeCount && state.byteCount > limit / 2
        state.byteCount -= byteCount
        state.messageCount -= 1
        let isFull = state.messageCount > freeCount && state.byteCount > limit / 2
        let isCurrent = delivery.generation == state.generation && !state.isEnded
        return (isCurrent, wasFull && !isFull)
      }
      // What can no longer be acknowledged comes again.
      if mode == .auto || isCurrent { return (item, readsOn) }
    }
    return nil
  }
}

extension STOMPFrame {
  /// About how many bytes it has in memory.
  fileprivate var byteCount: Int {
    headers.reduce(body.count + 64) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 }
  }
}
