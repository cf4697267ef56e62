import Foundation
import StrictJSON
import TestSupport
import Testing

@testable import AccessControl

@Suite struct PatternTests {
  @Test(arguments: [
    ("chat", "mychat1", true), ("^chat$", "mychat", false), ("^chat$", "chat", true),
    ("a.b", "a.b", true), ("a\\.b", "axb", false), ("", "x", true), ("^$", "x", false),
    ("^channel-[A-Za-z0-9]*$", "channel-x9", true), ("^channel-[A-Za-z0-9]*$", "channel-_", false),
    ("^(a|bc)+$", "abcbca", true), ("^(a|bc)+$", "abcb", false), ("^a{2,3}$", "aaaa", false),
    ("^a{2,3}$", "aaa", true), ("^a{2}$", "a", false), ("^a{2,}$", "aaaaa", true),
    ("^(?:ab)?c$", "c", true), ("[^a-c]", "abc", false), ("[]a]", "]", true), ("[a-]", "-", true),
    ("\\d\\w\\s", "1a ", true), ("\\D", "123", false), ("[\\d_]+$", "a_1", true),
    ("é", "cafe\u{301}", false), ("^.$", "é", true), ("a|", "x", true), ("()*", "x", true),
    ("(a*)*$", "b", true), ("x*?y", "y", true), ("a$b", "ab", false), ("b^a", "ba", false),
    ("^^a$$", "a", true), ("[\\]]", "]", true), ("\\^", "^", true),
  ])
  func `a pattern is searched for in a name`(pattern: String, name: String, isFound: Bool) throws {
    #expect(try NamePattern(pattern).matches(name) == isFound)
  }

  @Test(arguments: [
    "(", ")", "a)", "(a", "[", "[a", "[b-a]", "*", "+a", "a**", "a{", "a{2", "a{3,2}", "a{,2}",
    "a{2000}", "\\", "\\b", "\\1", "\\k", "(?i)a", "(?=a)", "(?<n>a)", "[[:alpha:]]", "[\\d-z]",
    "?",
    "((((a{9}){9}){9}){9})", String(repeating: "(", count: 40) + String(repeating: ")", count: 40),
    String(repeating: "a", count: 257), "{2}",
  ])
  func `a pattern outside of the subset is refused`(pattern: String) {
    let error = #expect(throws: AccessError.self) { try NamePattern(pattern) }
    #expect(error?.code == .invalidPattern)
    #expect(error?.hint != nil)
  }

  @Test func `the patterns of a token together have a bound`() throws {
    let entries = (0..<10).map { TokenRights.Entry("[a-z]{200}\($0)", .read) }
    let error = #expect(throws: AccessError.self) {
      try token(patterns: TokenRights(channels: entries))
    }
    #expect(error?.code == .invalidPattern)
    _ = try token(patterns: TokenRights(channels: Array(entries.prefix(4))))
  }

  /// What takes a backtracking engine longer than the age of the universe.
  @Test(arguments: ["(a+)+$", "(a|a)*b", "(a*)*(a*)*(a*)*b", "(.*)(.*)(.*)(.*)x$"])
  func `a hostile pattern on a long name takes milliseconds`(pattern: String) throws {
    let compiled = try NamePattern(pattern)
    let name = String(repeating: "a", count: 199) + "!"
    let time = processorTime { #expect(!compiled.matches(name)) }
    #expect(time < .seconds(2))
  }

  @Test(.enabled(if: PubNubReader.isAvailable, PubNubReader.reason))
  func `Python's re finds what a pattern finds`() throws {
    var random = SeededRandom(seed: 0x9A77E2)
    var pairs: [(pattern: String, name: String)] = []
    while pairs.count < 3000 {
      let pattern = Self.pattern(&random, depth: 0)
      guard (try? NamePattern(pattern)) != nil else { continue }
      pairs.append((pattern, Self.name(&random)))
    }
    let input = pairs.map { JSONValue.array([.string($0.pattern), .string($0.name)]).text }
    let found = try PubNubReader.lines("search", input: input)
    #expect(found.count == pairs.count)
    #expect(found.count { $0 == "1" } > 500 && found.count { $0 == "0" } > 500)
    for (pair, answer) in zip(pairs, found) {
      #expect(
        try NamePattern(pair.pattern).matches(pair.name) == (answer == "1"),
        "\(pair.pattern) in \(pair.name)")
    }
  }

  private static func name(_ random: inout SeededRandom) -> String {
    let letters = Array("aabbc-.1é")
    return String((0..<1 + random.next(8)).map { _ in letters[random.next(letters.count)] })
  }

  private static func pattern(_ random: inout SeededRandom, depth: Int) -> String {
    let atoms = ["a", "b", "c", ".", "\\.", "\\d", "\\W", "[ab]", "[^a]", "[a-c1]", "^", "$", "é"]
    var text = ""
    for _ in 0..<1 + random.next(4) {
      let isGroup = depth < 3 && random.oneIn(5)
      let atom =
        isGroup ? "(\(pattern(&random, depth: depth + 1)))" : atoms[random.next(atoms.count)]
      // Python refuses to repeat an anchor.
      let isAnchor = atom == "^" || atom == "$"
      let counts = ["*", "+", "?", "{2}", "{1,2}", "{0,}", "*?"]
      text += atom + (!isAnchor && random.oneIn(3) ? counts[random.next(counts.count)] : "")
      if random.oneIn(8) { text += "|" }
    }
    return text
  }
}
