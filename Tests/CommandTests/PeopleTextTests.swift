import Foundation
import TestSupport
import Testing

/// Names, reasons and paths with characters that control a terminal.
@Suite struct PeopleTextTests {
  /// ESC, C1, DEL, overrides and isolates, marks, line and paragraph separators, and a harmless
  /// umlaut.
  private static let hostile =
    "a\u{1B}[2J\u{9B}31m\u{7F}\u{202E}\u{202A}\u{2066}\u{2069}"
    + "\u{200E}\u{200F}\u{61C}\u{2028}\u{2029}ä"
  private static let shown =
    #"a\u{1b}[2J\u{9b}31m\u{7f}\u{202e}\u{202a}\u{2066}\u{2069}"#
    + #"\u{200e}\u{200f}\u{61c}\u{2028}\u{2029}ä"#

  /// Whether the text has no control characters except newlines and tabs.
  private func isClean(_ text: String) -> Bool {
    !text.unicodeScalars.contains {
      $0.properties.isBidiControl || [0x2028, 0x2029].contains($0.value)
        || ($0.properties.generalCategory == .control && $0 != "\n" && $0 != "\t")
    }
  }

  @Test func `item names and arguments are escaped in text and errors, but not in JSON`() throws {
    let home = try TestHome.secured()
    let name = Self.hostile
    #expect(try home.unlocked("set", "messaging", name, input: "value").status == 0)
    let text = try home.unlocked("items", "messaging").text
    #expect(text == "string\t\(Self.shown)\n")
    let json = try home.unlocked("items", "messaging", "--json").output
    struct Names: Decodable {
      struct Item: Decodable { let name: String }
      let items: [Item]
    }
    #expect(try JSONDecoder().decode(Names.self, from: Data(json)).items.map(\.name) == [name])
    #expect(try home.unlocked("get", "messaging", name).text == "value")
    for arguments in [
      ["get", "messaging", name + "x"], ["get", name, "x"], ["queue", "import", name],
      ["database", "verify", name, "--key-file", name], ["policy", "show", "v", "--\(name)"],
      ["queue", "receive", "c", "--lease", name],
    ] {
      let outcome = try Tool.run(
        arguments
          + (arguments[0] == "database"
            ? [] : ["--home", home.path, "--password-file", home.passwordFile]))
      #expect(outcome.status != 0)
      #expect(isClean(outcome.errors), "\(arguments): \(outcome.errors.debugDescription)")
      // A name cannot forge a line of its own.
      let lines = outcome.errors.split(separator: "\n")
      let starts = ["datavault: ", "hint: "]
      #expect(lines.allSatisfy { line in starts.contains { line.hasPrefix($0) } }, "\(lines)")
    }
  }

  @Test func `a line break in an argument starts no new line of an error`() throws {
    let outcome = try Tool.run(["database", "verify", "a\nhint: trust me", "--key-file", "b\nc"])
    #expect(outcome.status != 0)
    #expect(!outcome.errors.contains("\nhint: trust me"))
    #expect(outcome.errors.contains(#"\u{a}"#))
  }

  @Test func `tables are escaped, payloads are not`() throws {
    let home = try TestHome.secured()
    let channel = "c\u{202E}\u{2066}"
    let payload = "p\u{1B}\u{202E}\n"
    #expect(try home.queue("publish", channel, input: payload).status == 0)
    for command in ["channels", "stats"] {
      let outcome = try home.queue(command)
      #expect(outcome.text.contains(#"c\u{202e}\u{2066}"#))
      #expect(isClean(outcome.text))
    }
    try home.queue("consumers", "add", channel, "r\u{200F}", "--attempts", "1")
      .expect(0)
    let lease = try home.queue(
      "receive", channel, "--consumer", "r\u{200F}", "--no-ack", "--ndjson")
    let token = try #require(lease.text.firstMatch(of: /"token":"([^"]*)"/)?.1)
    try home.queue("reject", String(token), "--reason", Self.hostile).expect(0)
    let letters = try home.queue("dead-letters", channel, "--consumer", "r\u{200F}")
    #expect(letters.text.contains(Self.shown), "\(letters.text.debugDescription)")
    #expect(isClean(letters.text))
    #expect(try home.queue("receive", channel).text == payload)
  }
}
