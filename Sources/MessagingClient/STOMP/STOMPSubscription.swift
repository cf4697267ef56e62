internal import MessageCipher

/// The messages of one destination, in their order, until it is unsubscribed or refused, or its client is closed or gone.
///
/// It is for one task. It ends when nothing refers to it or its iterator.
///
/// A slow application holds the connection back: the client reads no further while
/// ``STOMPConfiguration/waitingByteCount`` wait. So the server can end the connection of a slow client. While the
/// client waits for a receipt, it reads on. If then 16 times as much waits, the sequence ends with the error `busy`,
/// because the client can neither drop messages silently nor keep all of them. In the modes with acknowledgements, as
/// many messages as the prefetch can always wait.
public final class STOMPSubscription: AsyncSequence, Sendable {
  /// A message, or a change of the status.
  public typealias Element = STOMPEvent

  private let feed: STOMPFeed
  private let connection: STOMPConnection
  private let cipher: MessageCipher?

  init(_ feed: STOMPFeed, _ connection: STOMPConnection, _ cipher: MessageCipher?) {
    self.feed = feed
    self.connection = connection
    self.cipher = cipher
  }

  deinit { Task { [connection, feed] in await connection.remove(feed.number) } }

  /// What it was subscribed to, with the consumer.
  public var destination: String { feed.destination }

  /// Ends the sequence; the server gives what waits for an acknowledgement to others, without counting an attempt.
  public func unsubscribe() async { await connection.remove(feed.number) }

  /// Begins to take the messages.
  public func makeAsyncIterator() -> Iterator { Iterator(subscription: self) }

  /// Takes the messages, for one task.
  public struct Iterator: AsyncIteratorProtocol {
    let subscription: STOMPSubscription

    /// The next message or status; nil at the end, or if the task is cancelled.
    ///
    /// - Throws: `forbidden` and `refused` if the server refuses the subscription after a reconnection;
    ///   `unauthenticated` if it refuses the login; `busy` if the application is much too slow.
    public mutating func next() async throws(MessagingClientError) -> STOMPEvent? {
      try await subscription.next()
    }
  }

  private func next() async throws(MessagingClientError) -> STOMPEvent? {
    guard let (item, readsOn) = await feed.next() else { return nil }
    if readsOn { await connection.readOn() }
    switch item {
    case .status(let status): return .status(status)
    case .message(let delivery):
      let settlement = STOMPSettlement(
        connection: connection, feed: feed.number, generation: delivery.generation,
        id: feed.mode == .auto ? nil : delivery.frame["ack"])
      let content = Result { try STOMPBody.open(delivery.frame.body, on: destination, cipher) }
      return .message(STOMPMessage(delivery.frame, feed, content: content, settlement))
    case .end(let error):
      if let error { throw error }
      return nil
    }
  }
}
