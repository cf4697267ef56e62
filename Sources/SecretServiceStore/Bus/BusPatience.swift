/// How long a peer that is slow, or that wants to be, is waited for.
package struct BusPatience: Sendable {
  /// For the answer to one call; starting the service is part of the first.
  let answer: Duration
  /// For all answers over one connection together: a service that answers each call just in time would
  /// otherwise keep its caller for as many calls as it has items.
  let conversation: Duration

  package init(answer: Duration, conversation: Duration) {
    self.answer = answer
    self.conversation = conversation
  }

  /// 25 seconds a call, as D-Bus has it by default; a minute for all.
  package static let standard = BusPatience(answer: .seconds(25), conversation: .seconds(60))
}
