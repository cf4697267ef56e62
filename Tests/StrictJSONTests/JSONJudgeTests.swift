import StrictJSON
import TestSupport
import Testing

/// Python's json module judges random texts, half of them with a random fault.
@Suite struct JSONJudgeTests {
  private static let script = #"""
    import json, sys
    twice = False
    def pairs(members):
        global twice
        names = [name for name, _ in members]
        twice = twice or len(set(names)) < len(names)
        return ["object", members]
    def real(text):
        global twice
        twice = twice or float(text) in (float("inf"), float("-inf"))
        return ("number", text)
    def refuse(name): raise ValueError(name)
    def read(text):
        return json.loads(text, object_pairs_hook=pairs, parse_int=real, parse_float=real,
            parse_constant=refuse)
    for line in sys.stdin:
        text, ours = line.strip("\n").split(" ")
        twice = False
        try: value = read(bytes.fromhex(text).decode())
        except ValueError: print("invalid"); continue
        try: str(json.dumps(value, ensure_ascii=False)).encode()
        except UnicodeEncodeError: print("half pair"); continue
        if twice: print("no value"); continue
        print("valid" if value == read(bytes.fromhex(ours).decode()) else "another value")
    """#

  @Test(arguments: [0x15A8, 0x15A9] as [UInt64])
  func `Python's json module agrees about random texts, and reads the same values from ours`(
    seed: UInt64
  ) throws {
    var random = SeededRandom(seed: seed)
    var texts: [[UInt8]] = []
    for number in 0..<2000 {
      var text = RandomText.value(&random, depth: 0)
      if number % 2 == 1 { RandomText.damage(&text, &random) }
      texts.append(text)
    }
    var expected: [String] = []
    var input = ""
    for text in texts {
      let value = try? JSONReader.value(text)
      input += "\(hexadecimal(text)) \(hexadecimal(Array(value?.text.utf8 ?? "".utf8)))\n"
      if (try? JSONText.check(text, acceptsHalfPairs: true)) == nil {
        expected.append("invalid")
      } else if (try? JSONText.check(text)) == nil {
        expected.append("half pair")
      } else {
        expected.append(value == nil ? "no value" : "valid")
      }
    }
    let program = try Program.run(
      "/usr/bin/python3", ["-c", Self.script], input: Array(input.utf8))
    let found = program.text.split(separator: "\n").map(String.init)
    try #require(found.count == texts.count, "\(program.errors)")
    for (text, (found, expected)) in zip(texts, zip(found, expected)) where found != expected {
      Issue.record("\(found), not \(expected): \(String(decoding: text, as: UTF8.self))")
    }
    for kind in ["invalid", "half pair", "no value", "valid"] {
      #expect(found.count { $0 == kind } > 20, "\(kind)")
    }
  }

  private func hexadecimal(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(
      decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }
}

/// JSON texts that use the whole grammar.
private enum RandomText {
  static func value(_ random: inout SeededRandom, depth: Int) -> [UInt8] {
    let kind = random.next(depth < 4 ? 8 : 5)
    let text: [UInt8] =
      switch kind {
      case 0: Array(pick(["null", "true", "false"], &random).utf8)
      case 1, 2: number(&random)
      case 3, 4: string(&random)
      case 5: list("[", "]", &random) { value(&$0, depth: depth + 1) }
      default:
        list("{", "}", &random) {
          // Few letters, so that some names are there twice.
          let name = $0.next(3) == 0 ? string(&$0) : Array(#""\#(pick(letters, &$0))""#.utf8)
          return name + space(&$0) + Array(":".utf8) + value(&$0, depth: depth + 1)
        }
      }
    return space(&random) + text + space(&random)
  }

  /// Changes, removes, adds or cuts.
  static func damage(_ text: inout [UInt8], _ random: inout SeededRandom) {
    let position = random.next(text.count)
    switch random.next(4) {
    case 0: text[position] = byte(&random)
    case 1: text.remove(at: position)
    case 2: text.insert(byte(&random), at: position)
    default: text.removeSubrange(position..<min(text.count, position + 1 + random.next(8)))
    }
  }

  private static let letters = "abcdefghijklmnopqrst".map { "\($0)" }
  private static let pieces = [
    "a", "Z", " ", "/", "é", "漢", "😀", "\u{7F}", "\u{2028}", "\u{FEFF}", #"\n"#, #"\\"#, #"\""#,
    #"\/"#, #"\b"#, #"\u0000"#, #"\u00e9"#, #"\uFFFF"#, #"\ud83d\ude00"#, #"\uDBFF\uDFFF"#,
  ]
  private static let halves = [#"\ud800"#, #"\udc00"#, #"\uD83D\n"#]
  private static let interesting = Array(##"{}[]",:\/u+-.eE0123456789abtfn '#"##.utf8)

  private static func pick(_ choices: [String], _ random: inout SeededRandom) -> String {
    choices[random.next(choices.count)]
  }

  private static func byte(_ random: inout SeededRandom) -> UInt8 {
    random.oneIn(3)
      ? UInt8(truncatingIfNeeded: random.next()) : interesting[random.next(interesting.count)]
  }

  private static func space(_ random: inout SeededRandom) -> [UInt8] {
    random.oneIn(4) ? Array(pick([" ", "\t", "\r\n", "\n  "], &random).utf8) : []
  }

  private static func digits(_ random: inout SeededRandom) -> String {
    (0...random.next(random.oneIn(8) ? 30 : 3)).map { _ in "\(random.next(10))" }.joined()
  }

  private static func number(_ random: inout SeededRandom) -> [UInt8] {
    var text = random.oneIn(3) ? "-" : ""
    let whole = digits(&random).drop { $0 == "0" }
    text += whole.isEmpty ? "0" : whole
    if random.oneIn(3) { text += "." + digits(&random) }
    if random.oneIn(4) {
      text += pick(["e", "E"], &random) + pick(["", "+", "-"], &random)
      // Above 308, no Double holds it.
      text += random.oneIn(4) ? "\(random.next(900))" : "\(random.next(20))"
    }
    return Array(text.utf8)
  }

  private static func string(_ random: inout SeededRandom) -> [UInt8] {
    var text = "\""
    for _ in 0..<random.next(6) { text += pick(pieces, &random) }
    if random.oneIn(12) { text += pick(halves, &random) }
    return Array((text + "\"").utf8)
  }

  private static func list(
    _ begin: String, _ end: String, _ random: inout SeededRandom,
    _ element: (inout SeededRandom) -> [UInt8]
  ) -> [UInt8] {
    var text = Array(begin.utf8)
    for number in 0..<random.next(5) {
      if number > 0 { text += ",".utf8 }
      text += space(&random) + element(&random) + space(&random)
    }
    return text + end.utf8
  }
}
