/// What transactions have done with messages: numbers, and nothing of the messages.
struct Tally: Sendable, Hashable {
  var published = 0
  var received = 0
  /// Of those received, the ones that had been delivered before.
  var redelivered = 0
  var acknowledged = 0
  var released = 0
  var leasesExpired = 0
  /// Messages whose time to live was over before a consumer had them.
  var expired = 0
  var deadLettered = 0
  var redriven = 0
  /// Messages that retention removed.
  var retired = 0
  var purged = 0

  mutating func countReceived(_ deliveries: [Delivery]) {
    received += deliveries.count
    redelivered += deliveries.count { $0.attempt > 1 }
  }
}
