package import MessagingQueue

/// The events of channels for a subscriber that stays connected, and adds and removes channels as it goes.
///
/// It gives a channel's events after the addition of the channel, each once and in their order, until ``end()`` or the
/// end of the distribution.
package final class LiveFeed: Sendable {
  /// Takes events, never on two threads at the same time.
  ///
  /// It must not block.
  package typealias Handler = @Sendable ([LiveEvent]) -> Void

  private let realtime: Realtime
  private let id: SubscriberID

  /// A feed without channels.
  package init(_ realtime: Realtime, _ handler: @escaping Handler) {
    self.realtime = realtime
    id = realtime.openFeed(handler)
  }

  /// Begins with a channel, at the end of what was distributed; does nothing for one that it has.
  package func add(_ channel: Channel) { realtime.add(channel, to: id) }

  /// Ends a channel; events that are being delivered can still come.
  package func remove(_ channel: Channel) { realtime.remove(channel, from: id) }

  /// Ends all channels; events that are being delivered can still come.
  package func end() { realtime.closeFeed(id) }
}
