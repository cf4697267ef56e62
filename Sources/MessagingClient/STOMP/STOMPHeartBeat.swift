/// The heart-beats that both sides have agreed on.
struct STOMPHeartBeat: Sendable, Equatable {
  /// A server that is silent for so many intervals is lost: its heart-beats can be late.
  private static let toleratedCount = 2

  /// How often the client sends; nil for never.
  private(set) var outgoing: Duration?
  /// How often the server sends; nil for never.
  private(set) var incoming: Duration?

  init() {}

  /// Agrees on the slower of what one side offers and the other wants, for each direction.
  ///
  /// Nil for a header of CONNECTED that is not two numbers of milliseconds.
  init?(_ answer: String?, sends: Duration, wants: Duration) {
    guard let answer else { return }
    let numbers = answer.split(separator: ",", omittingEmptySubsequences: false).map { part in
      (1...9).contains(part.utf8.count) ? UInt32(part).map { Duration.milliseconds($0) } : nil
    }
    guard numbers.count == 2, let serverSends = numbers[0], let serverWants = numbers[1] else {
      return nil
    }
    if sends > .zero, serverWants > .zero { outgoing = max(sends, serverWants) }
    if wants > .zero, serverSends > .zero { incoming = max(wants, serverSends) }
  }

  /// The header of CONNECT.
  static func offer(sends: Duration, wants: Duration) -> String {
    "\(milliseconds(sends)),\(milliseconds(wants))"
  }

  private static func milliseconds(_ duration: Duration) -> Int64 {
    let (seconds, attoseconds) = duration.components
    // Nine digits are eleven days.
    guard seconds < 999_999 else { return 999_999_999 }
    return max(seconds * 1_000 + attoseconds / 1_000_000_000_000_000, 0)
  }

  /// How often to look; nil for never.
  var interval: Duration? { [outgoing, incoming].compactMap(\.self).min().map { $0 / 4 } }

  /// Halfway, so that a heart-beat that is a little late still comes in time.
  func needsHeartBeat(afterSilence silence: Duration) -> Bool {
    outgoing.map { silence >= $0 / 2 } ?? false
  }

  func isLost(afterSilence silence: Duration) -> Bool {
    incoming.map { silence > $0 * Self.toleratedCount } ?? false
  }
}
