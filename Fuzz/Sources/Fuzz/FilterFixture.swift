import Foundation
@_spi(Testing) import MessagingServer
@_spi(Testing) import StrictJSON

/// Filters of subscribers: any text, alone and within others, and trees written with few
/// parentheses and with many.
///
/// The first byte of the input selects one of these.
final class FilterFixture {
  /// Texts up to this length need fewer steps for a message than one evaluation has.
  private static let cheapByteCount = 512
  /// Far more than the steps of one evaluation take, and far less than any client waits.
  private static let longestTime = 1.0

  private struct Message {
    let payload: JSONValue
    let meta: JSONValue
  }

  private let messages: [Message]
  /// A message for which every operator is expensive.
  private let large: Message

  init() {
    func value(_ text: String) -> JSONValue {
      guard let value = JSONProbe.read(Array(text.utf8)).value else {
        preconditionFailure("no JSON: \(text)")
      }
      return value
    }
    messages = [
      Message(
        payload: value(#"{"a":1,"b":"Text","list":[1,"x",{"é":2}],"my-field":null,"n":0.5}"#),
        meta: value(
          #"{"a":5,"b":"hello world","n":9223372036854775807,"list":["A*","b"],"t":true}"#)),
      Message(payload: value(#""plain text""#), meta: .null),
      Message(payload: .null, meta: value(#"["x",[],{},-1.5e3]"#)),
    ]
    let text = String(repeating: "aÉ", count: 1_000)
    let texts = JSONValue.array(Array(repeating: .string(text), count: 4))
    large = Message(
      payload: ["a": texts, "b": .string(text), "list": texts],
      meta: .object(
        (0..<500).map { JSONMember("a\($0)", .string(text)) } + [JSONMember("a", texts)])
    )
    require(decision("a == 5 && data.b LIKE 't*'") == [true, false, false], "a filter is wrong")
  }

  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard let mode = input.first else { return }
    let rest = Array(input.dropFirst())
    switch mode & 3 {
    case 0, 1: check(String(decoding: rest, as: UTF8.self))
    case 2: pair(rest)
    default: tree(rest)
    }
  }

  // MARK: - Any text

  private func check(_ text: String) {
    let filter: FilterProbe
    do {
      filter = try FilterProbe(text)
    } catch {
      let isWithin = (0...text.utf8.count).contains(error.offset)
      require(isWithin, "a fault at \(error.offset) of \(text.utf8.count)")
      return
    }
    bounds(text)
    for message in messages + [large] {
      let start = clock()
      let isMatch = filter.matches(payload: message.payload, meta: message.meta)
      let time = Double(clock() - start) / Double(CLOCKS_PER_SEC)
      require(time < Self.longestTime, "an evaluation takes \(time) s")
      let again = filter.matches(payload: message.payload, meta: message.meta)
      require(again == isMatch, "a filter decides in two ways")
      guard !filter.readsPayload else { continue }
      let other = filter.matches(payload: ["a": 7, "b": "other"], meta: message.meta)
      require(other == isMatch, "a filter reads a payload that it does not read")
    }
    guard text.utf8.count <= Self.cheapByteCount else { return }
    within(text, decision(filter))
  }

  /// What is accepted keeps the bounds, counted in another way.
  private func bounds(_ text: String) {
    require(text.utf8.count <= FilterProbe.maximumByteCount, "\(text.utf8.count) bytes")
    var (depth, signs, quote, isEscaped) = (0, 0, UInt8(0), false)
    for byte in text.utf8 {
      if isEscaped { isEscaped = false; continue }
      switch byte {
      case UInt8(ascii: "\\") where quote != 0: isEscaped = true
      case quote where quote != 0: quote = 0
      case _ where quote != 0: break
      case UInt8(ascii: "\""), UInt8(ascii: "'"): quote = byte
      case UInt8(ascii: "("): depth += 1
      case UInt8(ascii: ")"): depth -= 1
      case UInt8(ascii: "~"): signs += 1
      default: break
      }
      require((0...FilterProbe.maximumDepth).contains(depth), "\(depth) parentheses")
    }
    require(depth == 0 && quote == 0, "parentheses or quotes without end")
    require(signs <= FilterProbe.maximumNodeCount, "\(signs) operators")
  }

  /// A filter means the same within another, unless the whole exceeds a bound.
  private func within(_ text: String, _ expected: [Bool]) {
    let isEmpty = text.utf8.allSatisfy { " \t\r\n".utf8.contains($0) }
    require(!isEmpty || expected.allSatisfy { $0 }, "an empty filter is false")
    require(decision("\n \(text)\t\r") == expected, "white space changes a filter")
    guard !isEmpty else { return }
    let negated = expected.map { !$0 }
    for (whole, result) in [
      ("(\(text))", expected), ("!(\(text))", negated), ("!!(\(text))", expected),
      ("(\(text)) && true", expected), ("null || (\(text))", expected),
      ("(\(text)) && ''", expected.map { _ in false }),
      ("1 || (\(text))", expected.map { _ in true }),
      ("(\(text)) == ~0 && false || (\(text))", expected),
    ] {
      guard let found = decision(whole) else { continue }
      require(found == result, "a filter means something else within another")
    }
  }

  // MARK: - Two filters

  /// Two filters together are what their results are together, and a text fits a pattern or not.
  private func pair(_ input: [UInt8]) {
    let parts = input.split(separator: 0, maxSplits: 1).map { String(decoding: $0, as: UTF8.self) }
    guard parts.count == 2, input.count <= Self.cheapByteCount else { return }
    pattern(Array(parts[0].utf8), Array(parts[1].utf8))
    guard let a = decision(parts[0]), let b = decision(parts[1]),
      let and = decision("(\(parts[0])) && (\(parts[1]))"),
      let or = decision("(\(parts[0])) || (\(parts[1]))")
    else { return }
    for index in messages.indices {
      require(and[index] == (a[index] && b[index]), "&& is wrong")
      require(or[index] == (a[index] || b[index]), "|| is wrong")
    }
    // The laws of De Morgan.
    if let other = decision("!(!(\(parts[0])) || !(\(parts[1])))") {
      require(other == and, "&& is not the opposite of ||")
    }
  }

  /// `LIKE` and `CONTAINS` find what a search finds that tries every place.
  private func pattern(_ text: [UInt8], _ pattern: [UInt8]) {
    let contains = "\(quoted(text)) CONTAINS \(quoted(pattern))"
    let isContained =
      pattern.isEmpty || text.indices.contains { text[$0...].starts(with: pattern) }
    require(decision(contains)?.first == isContained, "CONTAINS is wrong: \(contains)")
    // Of other letters, the library knows which is small.
    guard (text + pattern).allSatisfy({ $0 < 0x80 }) else { return }
    let otherCase = text.map { (byte) -> UInt8 in
      (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) ? byte ^ 0x20 : byte
    }
    for pattern in [pattern, otherCase] {
      let like = "\(quoted(text)) LIKE \(quoted(pattern, isPattern: true))"
      require(decision(like)?.first == fits(text, pattern), "LIKE is wrong: \(like)")
    }
  }

  /// A string of a filter; of a pattern, a star stays a wildcard, and `?` becomes a star that is none.
  private func quoted(_ text: [UInt8], isPattern: Bool = false) -> String {
    let bytes = text.flatMap { (byte) -> [UInt8] in
      switch byte {
      case UInt8(ascii: "?") where isPattern: Array("\\*".utf8)
      case UInt8(ascii: "*") where isPattern: [byte]
      case UInt8(ascii: "*"), UInt8(ascii: "'"), UInt8(ascii: "\\"): [UInt8(ascii: "\\"), byte]
      default: [byte]
      }
    }
    return "'\(String(decoding: bytes, as: UTF8.self))'"
  }

  /// Whether a text matches a pattern in which `?` is a star that is no wildcard.
  private func fits(_ text: [UInt8], _ pattern: [UInt8]) -> Bool {
    func small(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte + 0x20 : byte }
    // Whether the pattern up to here fits each beginning of the text.
    var row = [true] + text.map { _ in false }
    for byte in pattern {
      var next = row.map { _ in false }
      for index in row.indices {
        next[index] =
          byte == UInt8(ascii: "*")
          ? row[index] || index > 0 && next[index - 1]
          : index > 0 && row[index - 1]
            && small(text[index - 1])
              == (byte == UInt8(ascii: "?") ? UInt8(ascii: "*") : small(byte))
      }
      row = next
    }
    return row[text.count]
  }

  // MARK: - Trees

  /// A tree decides the same with all its parentheses and with those alone that it needs.
  private func tree(_ input: [UInt8]) {
    var rest = input.prefix(100)
    let tree = FilterTree(&rest, depth: 5)
    let (short, long) = (tree.text(level: 0), tree.fullText)
    guard long.utf8.count <= Self.cheapByteCount else { return }
    guard let a = decision(short), let b = decision(long) else {
      return require(false, "a tree is refused: \(short)")
    }
    require(a == b, "operators bind in another way: \(short)")
    check(short)
  }

  /// What a filter decides for each message; nil if it is refused.
  private func decision(_ text: String) -> [Bool]? { (try? FilterProbe(text)).map(decision) }

  private func decision(_ filter: FilterProbe) -> [Bool] {
    messages.map { filter.matches(payload: $0.payload, meta: $0.meta) }
  }
}
