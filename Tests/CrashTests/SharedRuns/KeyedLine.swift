/// A line that a publisher sends as JSON, with its sender and number; most lines have one of five
/// keys.
struct KeyedLine: Sendable {
  let run: Int
  let publisher: Int

  /// The payload of a number: mostly short, sometimes longer than a page.
  func payload(_ number: Int) -> [UInt8] {
    let line = NumberedLines(run: run << 4 | publisher).line(number)
    return Array("\(run) \(publisher) ".utf8) + line.prefix(number % 16 == 0 ? 6_000 : 300)
  }

  func key(_ number: Int) -> String? { number % 4 == 3 ? nil : "\(publisher)-\(number % 5)" }

  func line(_ number: Int) -> [UInt8] {
    let payload = String(decoding: payload(number), as: UTF8.self)
    let key = key(number).map { #","orderingKey":"\#($0)""# } ?? ""
    return Array(#"{"payload":"\#(payload)"\#(key)}"#.utf8)
  }

  /// A line of `queue receive --ndjson`.
  struct Received: Decodable {
    let payload: String
    let orderingKey: String?
    let token: String?
  }

  /// The label of a received line; nil for a line that no publisher sent.
  static func label(of received: Received, run: Int, publisherCount: Int) -> DeliveryChecker.Label?
  {
    let words = received.payload.split(separator: " ", maxSplits: 4)
    guard words.count == 5, words[0] == String(run), let publisher = Int(words[1]),
      (0..<publisherCount).contains(publisher), let number = Int(words[3])
    else { return nil }
    let sent = KeyedLine(run: run, publisher: publisher)
    guard Array(received.payload.utf8) == sent.payload(number),
      received.orderingKey == sent.key(number)
    else { return nil }
    return DeliveryChecker.Label(publisher: publisher, number: number)
  }
}
