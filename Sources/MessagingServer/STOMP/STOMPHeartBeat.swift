internal import StrictJSON

/// The heart-beats that both sides have agreed on.
struct STOMPHeartBeat: Sendable, Equatable {
  /// A client that is silent for so many intervals is gone: its heart-beats can be late.
  private static let toleratedCount: UInt64 = 2

  /// Nil for none.
  private var sendNanoseconds: UInt64?
  private var receiveNanoseconds: UInt64?
  private var lastSent: UInt64 = 0
  private var lastReceived: UInt64 = 0

  init() {}

  /// Agrees on the slower of what the client offers and what this server can do, for each direction.
  ///
  /// Nil for a header that is not two numbers of milliseconds.
  init?(_ header: String?, _ shortest: Duration) {
    guard let header else { return }
    let numbers = header.split(separator: ",", omittingEmptySubsequences: false).map { part in
      part.utf8.count < 10 ? UInt64(part.trimmingPrefix(" ")) : nil
    }
    guard numbers.count == 2, let canSend = numbers[0], let wants = numbers[1] else { return nil }
    if canSend > 0 { receiveNanoseconds = max(canSend * 1_000_000, shortest.nanoseconds) }
    if wants > 0 { sendNanoseconds = max(wants * 1_000_000, shortest.nanoseconds) }
  }

  /// What this server offers, in milliseconds; zeros to a client that wants none.
  func answer(_ shortest: Duration) -> String {
    let offer = shortest.nanoseconds / 1_000_000
    return "\(sendNanoseconds == nil ? 0 : offer),\(receiveNanoseconds == nil ? 0 : offer)"
  }

  mutating func didSend(at now: UInt64) { lastSent = now }
  mutating func didReceive(at now: UInt64) { lastReceived = now }

  /// Halfway, so that a heart-beat that is a little late still comes in time.
  var sendDeadline: UInt64? { sendNanoseconds.map { lastSent + $0 / 2 } }

  var receiveDeadline: UInt64? {
    receiveNanoseconds.map { lastReceived + Self.toleratedCount * $0 }
  }
}

extension Duration {
  /// For a span that is not negative.
  var nanoseconds: UInt64 {
    UInt64(components.seconds) * 1_000_000_000 + UInt64(components.attoseconds / 1_000_000_000)
  }
}

extension String {
  /// The type of a payload whose publisher has named none: PubNub's messages are JSON, and Pusher's are text.
  static func contentType(of payload: [UInt8]) -> String {
    if JSONText.isValid(payload) { return "application/json" }
    return String(validating: payload, as: UTF8.self) == nil
      ? "application/octet-stream" : "text/plain;charset=utf-8"
  }
}
