/// A message of NATS' client protocol: its first line, and what it carries.
public struct WireMessage: Sendable, Equatable {
  /// Where it goes.
  public enum Direction: Sendable { case toBroker, toNode }

  /// The direction in which it came.
  public let direction: Direction
  /// The words of the first line, of which the first is the operation.
  public let words: [String]
  /// Headers and body of PUB, HPUB, MSG and HMSG; nil for all others.
  public let content: [UInt8]?

  /// The first word, such as PUB.
  public var operation: String { words[0] }

  /// The subject of a message with content; empty for all others.
  public var subject: String { content == nil ? "" : words[1] }

  /// The message as it is sent.
  public var bytes: [UInt8] {
    let end = Array("\r\n".utf8)
    return Array(words.joined(separator: " ").utf8) + end + (content.map { $0 + end } ?? [])
  }

  /// How many words at the end of the line say the sizes.
  private var sizeCount: Int { operation.uppercased().hasPrefix("H") ? 2 : 1 }

  /// The same with one bit of the content changed.
  public func changing(bit: Int) -> WireMessage {
    guard var content, !content.isEmpty else { return self }
    content[bit / 8 % content.count] ^= 1 << UInt8(bit % 8)
    return WireMessage(direction: direction, words: words, content: content)
  }

  /// The content of another message under this line; nil if their operations differ.
  public func carrying(_ other: WireMessage) -> WireMessage? {
    guard operation == other.operation, content != nil, other.content != nil else { return nil }
    return WireMessage(
      direction: direction, words: words.dropLast(sizeCount) + other.words.suffix(sizeCount),
      content: other.content)
  }
}

/// Splits the bytes of one direction of a connection into messages.
struct WireParser {
  let direction: WireMessage.Direction
  private var rest: [UInt8] = []

  init(_ direction: WireMessage.Direction) { self.direction = direction }

  /// The messages that are complete now.
  mutating func take(_ bytes: some Sequence<UInt8>) -> [WireMessage] {
    rest += bytes
    var messages: [WireMessage] = []
    var start = 0
    while let (message, byteCount) = next(from: start) {
      messages.append(message)
      start += byteCount
    }
    rest.removeFirst(start)
    return messages
  }

  private func next(from start: Int) -> (WireMessage, byteCount: Int)? {
    guard let end = rest[start...].firstIndex(of: UInt8(ascii: "\n")) else { return nil }
    let line = rest[start..<end].last == UInt8(ascii: "\r") ? start..<end - 1 : start..<end
    let words = String(decoding: rest[line], as: UTF8.self)
      .split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    var content: [UInt8]?
    var next = end + 1
    if ["PUB", "HPUB", "MSG", "HMSG"].contains(words[0].uppercased()) {
      let byteCount = words.last.flatMap { Int($0) } ?? 0
      guard rest.count >= next + byteCount + 2 else { return nil }
      content = Array(rest[next..<next + byteCount])
      next += byteCount + 2
    }
    return (WireMessage(direction: direction, words: words, content: content), next - start)
  }
}
