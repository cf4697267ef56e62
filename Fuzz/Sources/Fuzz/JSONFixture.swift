import Foundation
@_spi(Testing) import StrictJSON

/// JSON texts: any bytes, nested deep, and values that are written.
///
/// The first byte of the input selects one of these. Foundation's reader is the judge.
final class JSONFixture {
  /// Faults for which Foundation accepts some texts that the reader refuses.
  private static let foundationAccepts: Set<String> = [
    "has a member twice", "is nested too deep", "begins with a byte order mark", "is not UTF-8",
  ]
  /// Faults of texts that the check alone accepts.
  private static let checkAccepts: Set<String> = [
    "has a member twice", "has a number out of range",
  ]

  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard let mode = input.first else { return }
    let rest = Array(input.dropFirst())
    switch mode & 3 {
    case 0, 1: check(rest)
    case 2: nested(rest, kind: mode >> 2)
    default: written(rest)
    }
  }

  /// Up to 300 objects and arrays around any bytes.
  private func nested(_ input: [UInt8], kind: UInt8) {
    guard let count = input.first else { return }
    let levelCount = Int(count) + Int(kind & 3) * 16
    let levels = (0..<levelCount).map { kind & 4 == 0 ? $0 & 1 == 0 : kind & 8 == 0 }
    let begin = levels.flatMap { ($0 ? "[" : "{\"a\":").utf8 }
    let end = levels.reversed().map { $0 ? UInt8(ascii: "]") : UInt8(ascii: "}") }
    check(begin + input.dropFirst() + end)
  }

  /// A string of any characters is written as JSON that gives it back.
  private func written(_ input: [UInt8]) {
    let text = String(decoding: input, as: UTF8.self)
    let value = JSONValue.object([JSONMember(text, .array([.string(text), .string("")]))])
    let json = Array(value.text.utf8)
    let found = JSONProbe.read(json).value
    require(found.map { isSame($0, value) } == true, "a string comes back changed")
    check(json)
  }

  private func check(_ text: [UInt8]) {
    let (value, fault) = JSONProbe.read(text)
    let place = JSONProbe.check(text)
    let tolerant = JSONProbe.check(text, acceptsHalfPairs: true)
    require(place == nil || place == tolerant, "the tolerant check refuses more")
    guard let value else { return refused(text, fault, isChecked: place != nil) }
    guard let place else { return require(false, "a text is read that the check refuses") }
    require(isOnlySpace(text[..<place.lowerBound]), "the check skips more than white space")
    require(isOnlySpace(text[place.upperBound...]), "the check leaves out more than white space")
    require(isSame(JSONProbe.read(Array(text[place])).value, value), "the place is another's")
    let json = Array(value.text.utf8)
    require(isSame(JSONProbe.read(json).value, value), "a value changes when written")
    // An escape of two bytes can become one of six.
    require(json.count <= 3 * text.count, "the written text is too long")
    bounds(value, text)
    members(value, text)
    part(Array(text[place]), value)
    judge(value, text)
  }

  /// What is refused is refused by Foundation too, or for one of few reasons.
  private func refused(_ text: [UInt8], _ fault: String, isChecked: Bool) {
    require(!isChecked || Self.checkAccepts.contains(fault), "the check accepts what \(fault)")
    // Foundation allows a comma before the end, and a zero makes it guess another encoding.
    guard !text.contains(0), !hasCommaBeforeEnd(text) else { return }
    require(
      foundation(text) == nil || Self.foundationAccepts.contains(fault),
      "Foundation reads a text that \(fault)")
  }

  /// A bound of exactly its depth accepts a text, a lower one refuses it.
  private func bounds(_ value: JSONValue, _ text: [UInt8]) {
    let depth = depth(of: value)
    require(depth <= JSONProbe.maximumDepth, "a text of \(depth) levels is read")
    require(JSONProbe.read(text, maximumDepth: depth).value != nil, "\(depth) levels are refused")
    guard depth > 0 else { return }
    let found = JSONProbe.read(text, maximumDepth: depth - 1)
    require(found.fault == "is nested too deep", "a bound of \(depth - 1) is not kept")
  }

  /// A member that is searched for has the value that the reader gives it.
  private func members(_ value: JSONValue, _ text: [UInt8]) {
    guard case .object(let members) = value else {
      return require(JSONProbe.member("a", in: text) == nil, "a member of no object")
    }
    for member in members.prefix(8) {
      guard let place = JSONProbe.member(member.name, in: text) else {
        return require(false, "a member is not found")
      }
      let found = JSONProbe.read(Array(text[place])).value
      require(isSame(found, member.value), "a member has another value")
    }
    let names = Set(members.map { Array($0.name.utf8) })
    for name in ["a", "fuzz"] where !names.contains(Array(name.utf8)) {
      require(JSONProbe.member(name, in: text) == nil, "a member is found that is not there")
    }
  }

  /// No beginning of an object, an array or a string is a text, and nothing follows one.
  private func part(_ text: [UInt8], _ value: JSONValue) {
    require(
      JSONProbe.check(text + [UInt8(ascii: "1"), 0x20]) == nil || isNumber(value), "1 follows")
    require(JSONProbe.check(text + Array(",".utf8)) == nil, "a comma follows")
    guard let first = text.first, "{[\"".utf8.contains(first) else { return }
    let count = text.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xFFFFFF } % text.count
    require(JSONProbe.check(Array(text.prefix(count))) == nil, "a part of a text is accepted")
  }

  /// Foundation reads the same, in the text and in what is written.
  private func judge(_ value: JSONValue, _ text: [UInt8]) {
    guard let found = foundation(text), let again = foundation(Array(value.text.utf8)) else {
      return require(false, "Foundation refuses a text")
    }
    // Foundation drops some byte order marks within a string.
    guard !value.text.unicodeScalars.contains("\u{FEFF}") else { return }
    require(agrees(value, found), "Foundation reads another value")
    require(agrees(value, again), "Foundation reads another value in a written text")
  }

  private func foundation(_ text: [UInt8]) -> Any? {
    try? JSONSerialization.jsonObject(with: Data(text), options: .fragmentsAllowed)
  }

  private func agrees(_ value: JSONValue, _ found: Any) -> Bool {
    switch value {
    case .null: found is NSNull
    case .boolean(let value): found as? Bool == value
    case .integer(let value): (found as? NSNumber)?.int64Value == value
    case .number(let value):
      (found as? NSNumber).map { isNear($0.doubleValue, value.double) } ?? false
    case .string(let value): (found as? String)?.utf8.elementsEqual(value.utf8) == true
    case .array(let values):
      (found as? [Any]).map { found in
        found.count == values.count && zip(values, found).allSatisfy { agrees($0, $1) }
      } ?? false
    case .object(let members):
      (found as? [String: Any]).map { found in
        // Names that look alike are one for Foundation.
        Set(members.map(\.name)).count < members.count
          || found.count == members.count
            && members.allSatisfy { member in
              found[member.name].map { agrees(member.value, $0) } ?? false
            }
      } ?? false
    }
  }

  /// Foundation reads a long number with fewer digits.
  private func isNear(_ a: Double, _ b: Double) -> Bool {
    abs(a - b) <= max(1e-12 * abs(b), .leastNormalMagnitude)
  }

  /// Whether two values are written alike: `==` takes strings for one that only look alike.
  private func isSame(_ a: JSONValue?, _ b: JSONValue) -> Bool {
    a?.text.utf8.elementsEqual(b.text.utf8) == true
  }

  private func depth(of value: JSONValue) -> Int {
    switch value {
    case .array(let values): 1 + (values.map(depth).max() ?? 0)
    case .object(let members): 1 + (members.map { depth(of: $0.value) }.max() ?? 0)
    default: 0
    }
  }

  private func isNumber(_ value: JSONValue) -> Bool {
    switch value {
    case .integer, .number: true
    default: false
    }
  }

  private func hasCommaBeforeEnd(_ text: [UInt8]) -> Bool {
    let visible = text.filter { !" \t\r\n".utf8.contains($0) }
    return zip(visible, visible.dropFirst()).contains {
      $0 == UInt8(ascii: ",") && "]}".utf8.contains($1)
    }
  }

  private func isOnlySpace(_ bytes: ArraySlice<UInt8>) -> Bool {
    bytes.allSatisfy { " \t\r\n".utf8.contains($0) }
  }
}
