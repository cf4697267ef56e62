import Foundation
import StrictJSON
import TestSupport
import Testing

@testable import MessagingServer

/// Random filters and messages: the server must decide as a Python program does, which gets the filter as a tree.
@Suite struct FilterJudgeTests {
  private static let python = Program.python(with: "json", variable: "PYTHON", environment: "none")

  private indirect enum Tree {
    case constant(String)
    /// Characters, each with whether a backslash is before it.
    case text([(Character, Bool)])
    /// `data` or `meta`, and names or indices.
    case member(String, [Any])
    case list([Tree])
    case unary(String, Tree)
    case binary(String, Tree, Tree)

    var json: [Any] {
      switch self {
      case .constant(let text): ["constant", text]
      case .text(let characters): ["text", characters.map { [String($0.0), $0.1] as [Any] }]
      case .member(let source, let steps): ["member", source, steps]
      case .list(let trees): ["list", trees.map(\.json)]
      case .unary(let symbol, let tree): ["unary", symbol, tree.json]
      case .binary(let symbol, let left, let right): ["binary", symbol, left.json, right.json]
      }
    }
  }

  private static let levels = [
    ["||"], ["&&"], ["==", "!=", "<", "<=", ">", ">=", "LIKE", "CONTAINS"], ["|", "^", "&"],
    ["+", "-"], ["*", "/", "%"],
  ]

  /// Writes trees as filters, with few parentheses or many.
  private struct Writer {
    var random: SeededRandom

    mutating func space() -> String { ["", "", " ", "  ", "\t"][random.next(5)] }

    mutating func text(_ tree: Tree, level: Int = 0) -> String {
      if random.oneIn(6) { return "(\(space())\(text(tree))\(space()))" }
      switch tree {
      case .constant(let text): return text.hasPrefix("-") ? "(\(text))" : text
      case .text(let characters):
        let raw = characters.map { $0.1 ? "\\\($0.0)" : "\($0.0)" }.joined()
        return raw.contains("'") ? "\"\(raw)\"" : "'\(raw)'"
      case .member(let source, let steps): return member(source, steps)
      case .list(let trees):
        var texts: [String] = []
        for tree in trees { texts.append(text(tree)) }
        return "(\(texts.joined(separator: ",\(space())")))"
      case .unary(let symbol, let operand):
        return symbol + space() + text(operand, level: FilterJudgeTests.levels.count)
      case .binary(let symbol, let left, let right):
        let own = FilterJudgeTests.levels.firstIndex { $0.contains(symbol) } ?? 0
        let word = random.oneIn(3) ? symbol.lowercased() : symbol
        let space = symbol.first?.isLetter == true ? " " : space()
        // Comparisons do not group.
        let written =
          text(left, level: own == 2 ? 3 : own) + space + word + space
          + text(right, level: own + 1)
        return own < level ? "(\(written))" : written
      }
    }

    private mutating func member(_ source: String, _ steps: [Any]) -> String {
      var text = source
      for (index, step) in steps.enumerated() {
        if let name = step as? String {
          if source == "meta", index == 0, random.oneIn(2) {
            text = name
          } else {
            text += random.oneIn(2) ? ".\(name)" : "['\(name)']"
          }
        } else {
          text += "[\(step)]"
        }
      }
      return text
    }
  }

  /// Makes trees and messages.
  private struct Generator {
    var random: SeededRandom

    mutating func one(of choices: [String]) -> String { choices[random.next(choices.count)] }

    mutating func condition(_ depth: Int) -> Tree {
      switch depth > 0 ? random.next(10) : 4 {
      case 0: .binary("||", condition(depth - 1), condition(depth - 1))
      case 1: .binary("&&", condition(depth - 1), condition(depth - 1))
      case 2: .unary("!", condition(depth - 1))
      case 3: value(depth)
      case 4, 5: .binary(one(of: ["==", "!=", "<", "<=", ">", ">="]), value(depth), value(depth))
      case 6: .binary("LIKE", value(depth), random.oneIn(4) ? value(depth) : pattern())
      case 7: .binary("CONTAINS", value(depth), value(depth))
      default:
        .binary(one(of: ["<", ">=", "==", "!="]), arithmetic(depth), arithmetic(depth - 1))
      }
    }

    mutating func value(_ depth: Int) -> Tree {
      switch random.next(depth > 0 ? 12 : 7) {
      case 0...3: return member()
      case 4: return .constant(number())
      case 5: return pattern()
      case 6: return .constant(one(of: ["true", "false", "null"]))
      case 7: return .list((0..<2 + random.next(3)).map { _ in value(depth - 1) })
      case 8: return .unary(one(of: ["-", "~", "!"]), value(depth - 1))
      case 9: return condition(depth - 1)
      default:
        let symbol = one(of: ["+", "-", "*", "/", "%", "|", "^", "&"])
        return .binary(symbol, value(depth - 1), value(depth - 1))
      }
    }

    /// Numbers alone, so that the result is seldom null.
    mutating func arithmetic(_ depth: Int) -> Tree {
      if depth <= 0 || random.oneIn(4) {
        return random.oneIn(2) ? .member("meta", ["n"]) : .constant(number())
      }
      let symbol = one(of: ["+", "-", "-", "*", "/", "%", "|", "^", "&"])
      return .binary(symbol, arithmetic(depth - 1), arithmetic(depth - 1))
    }

    mutating func member() -> Tree {
      let steps = (0..<1 + random.next(2)).map { _ -> Any in
        random.oneIn(4) ? random.next(3) : one(of: ["a", "b", "n", "s", "é"])
      }
      // A bare index needs its source.
      return .member(one(of: ["data", "meta"]), steps)
    }

    mutating func number() -> String {
      one(of: ["0", "1", "2", "3", "1.5", "10", "0.25", "1e2", "9223372036854775807", "7.0"])
    }

    mutating func pattern() -> Tree {
      .text(
        (0..<random.next(5)).map { _ in
          let character = Character(one(of: ["a", "A", "b", "*", "*", "\\", "\"", "é", "É", "1"]))
          return (character, character == "\\" || character == "\"" || random.oneIn(5))
        })
    }

    mutating func string() -> String {
      let characters = (0..<random.next(5)).map { _ in
        one(of: ["a", "A", "b", "*", "\\\\", "é", "É", "1"])
      }
      return "\"\(characters.joined())\""
    }

    mutating func json(_ depth: Int) -> String {
      switch random.next(depth > 0 ? 9 : 5) {
      case 0, 1: return number()
      case 2, 3: return string()
      case 4: return one(of: ["true", "false", "null", "-3", "-1.50"])
      case 5, 6:
        return "[\((0..<random.next(4)).map { _ in json(depth - 1) }.joined(separator: ","))]"
      default:
        var members: [String] = []
        for name in ["a", "b", "n", "s", "é"] where !random.oneIn(4) {
          members.append("\"\(name)\":\(json(depth - 1))")
        }
        return "{\(members.joined(separator: ","))}"
      }
    }

    /// An object, nearly always.
    mutating func message() -> String {
      if random.oneIn(10) { return json(2) }
      return
        "{\"a\":\(json(2)),\"b\":\(json(1)),\"n\":\(number()),\"s\":\(string()),\"é\":\(json(1))}"
    }
  }

  @Test(.enabled(if: python != nil, "there is no python3"))
  func `a filter decides as the judge in Python does`() throws {
    var generator = Generator(random: SeededRandom(seed: 0xF117E4))
    var writer = Writer(random: SeededRandom(seed: 0x3717E))
    var cases: [(filter: String, data: String, meta: String, tree: Tree)] = []
    while cases.count < 2_000 {
      let tree = generator.condition(1 + generator.random.next(3))
      cases.append((writer.text(tree), generator.message(), generator.message(), tree))
    }
    let lines = try cases.map {
      try JSONSerialization.data(
        withJSONObject: ["tree": $0.tree.json, "payload": $0.data, "meta": $0.meta])
    }
    let judge = try Program.run(
      try #require(Self.python), [Repository.path("Tests/ReferenceReaders/filter_judge.py")],
      input: Array(lines.joined(separator: Data("\n".utf8))))
    try #require(judge.status == 0, "\(judge.errors)")
    let answers = judge.text.split(separator: "\n").map { $0 == "true" }
    try #require(answers.count == cases.count)
    for (asked, answer) in zip(cases, answers) {
      let found = try matches(asked.filter, data: asked.data, meta: asked.meta)
      #expect(
        found == answer, "\(asked.filter) for data \(asked.data) and meta \(asked.meta)")
    }
    let trueCount = answers.count { $0 }
    #expect(trueCount > 400 && trueCount < 1_600, "\(trueCount)")
  }
}
