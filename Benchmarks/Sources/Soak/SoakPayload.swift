/// The payload of a soak message: its publisher, its number and its time.
struct SoakPayload {
  let publisher: Int
  let number: Int
  private let sent: Duration

  init(publisher: Int, number: Int) {
    self.publisher = publisher
    self.number = number
    sent = Self.now
  }

  init?(_ bytes: [UInt8]) {
    let words = bytes.split(separator: UInt8(ascii: " "), maxSplits: 3)
    guard words.count == 4, let publisher = Int(String(decoding: words[0], as: UTF8.self)),
      let number = Int(String(decoding: words[1], as: UTF8.self)),
      let sent = Int64(String(decoding: words[2], as: UTF8.self))
    else { return nil }
    self.publisher = publisher
    self.number = number
    self.sent = .nanoseconds(sent)
  }

  func bytes(count: Int) -> [UInt8] {
    var bytes = Array("\(publisher) \(number) \(Int64(sent / .nanoseconds(1))) ".utf8)
    bytes += [UInt8](repeating: UInt8(ascii: "."), count: max(count - bytes.count, 1))
    return bytes
  }

  /// The time since the payload was made, in this process.
  var age: Duration { Self.now - sent }

  private static let start = ContinuousClock.now
  private static var now: Duration { start.duration(to: .now) }
}
