import Foundation

/// A line that a publisher sends as JSON: it says who sent it, as which, and hangs on one of three keys.
struct KeyedLine: Sendable {
  let run: Int
  let publisher: Int

  /// What the payload of a number is: mostly short, now and then longer than a page.
  func payload(_ number: Int) -> [UInt8] {
    let line = NumberedLines(run: run << 4 | publisher).line(number)
    return Array("\(run) \(publisher) ".utf8) + line.prefix(number % 16 == 0 ? 6_000 : 300)
  }

  func key(_ number: Int) -> String { "\(publisher)-\(number % 3)" }

  func line(_ number: Int) -> [UInt8] {
    let payload = String(decoding: payload(number), as: UTF8.self)
    return Array(#"{"payload":"\#(payload)","orderingKey":"\#(key(number))"}"#.utf8)
  }

  /// A line of `queue receive --ndjson`.
  struct Received: Decodable {
    let payload: String
    let orderingKey: String?
    let token: String?
  }

  /// What a received line is; nil for one that nobody sent.
  static func label(of received: Received, run: Int, publisherCount: Int) -> DeliveryLedger.Label? {
    let words = received.payload.split(separator: " ", maxSplits: 4)
    guard words.count == 5, words[0] == String(run), let publisher = Int(words[1]),
      (0..<publisherCount).contains(publisher), let number = Int(words[3]),
      Array(received.payload.utf8) == KeyedLine(run: run, publisher: publisher).payload(number)
    else { return nil }
    return DeliveryLedger.Label(publisher: publisher, number: number)
  }
}
