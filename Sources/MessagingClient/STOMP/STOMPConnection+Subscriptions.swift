// What a client is subscribed to, and what it settles.
extension STOMPConnection {
  func add(_ feed: STOMPFeed) async throws(MessagingClientError) {
    do throws(MessagingClientError) {
      let live = try await connected()
      entries[feed.number] = Entry(feed: feed, generation: live.generation)
      try await request([feed.subscribeFrame], subscription: feed.number, on: live)
    } catch {
      await remove(feed.number)
      // A subscription changes nothing that stays.
      guard error.code == .outcomeUnknown else { throw error }
      throw MessagingClientError(.unavailable, error.message, hint: error.hint)
    }
  }

  func remove(_ number: UInt64) async {
    guard let entry = entries.removeValue(forKey: number) else { return }
    log.unsubscribed(from: entry.feed.destination)
    entry.feed.end(nil)
    readOn()
    await unsubscribe(entry)
  }

  private func unsubscribe(_ entry: Entry) async {
    // A server ends the connection for a subscription that it does not know.
    guard let live, entry.generation == live.generation else { return }
    try? await request([STOMPFrame("UNSUBSCRIBE", [("id", "\(entry.feed.number)")])], on: live)
  }

  static let isSettled = MessagingClientError(
    .invalidArgument, "the message was settled before, or needs no acknowledgement")

  /// Settles messages of one connection with one request, all or none.
  func settle(
    _ frames: [STOMPFrame], _ settlements: [STOMPSettlement]
  ) async throws(MessagingClientError) {
    var changed: [UInt64: STOMPUnsettled] = [:]
    for settlement in settlements {
      guard let id = settlement.id else { throw Self.isSettled }
      guard live?.generation == settlement.generation, let entry = entries[settlement.feed] else {
        throw MessagingClientError(
          .unavailable, "the connection or the subscription of a message is lost",
          hint: "the server gives the message again")
      }
      guard changed[settlement.feed, default: entry.unsettled].take(id, entry.feed.mode) else {
        throw Self.isSettled
      }
    }
    for (feed, unsettled) in changed { entries[feed]?.unsettled = unsettled }
    guard let live else { throw Self.closed }
    try await request(frames, on: live)
  }

  func deliver(_ frame: STOMPFrame, to subscription: UInt64) {
    guard let entry = entries[subscription] else { return }
    let feed = entry.feed
    if feed.mode != .auto, let id = frame["ack"] { entries[subscription]?.unsettled.add(id) }
    if feed.put(frame, generation: generation) { return }
    endSubscription(
      subscription,
      MessagingClientError(
        .busy, "the application takes the messages of '\(feed.destination)' too slowly"))
    Task { await unsubscribe(entry) }
  }

  func endSubscription(_ number: UInt64, _ error: MessagingClientError) {
    guard let entry = entries.removeValue(forKey: number) else { return }
    if entry.isConfirmed { log.givesUp(error, channel: entry.feed.destination) }
    entry.feed.end(error)
  }
}
