import Foundation
import Testing

/// The rules for `--json` on every command that has it: `docs/reference/command-line.md`, "Output".
@Suite struct JSONReportTests {
  let home: TestHome
  let fixture: ExchangeFixture

  init() throws {
    home = try TestHome.unsecured()
    fixture = try ExchangeFixture(rowCount: 20)
  }

  /// Every command with `--json`, and arguments that make it report something.
  private static let invocations: [String: [String]] = [
    "list": [], "doctor": [], "status": ["v"], "verify": ["messaging"],
    "items": ["messaging"], "policy show": ["messaging"], "slots list": ["messaging"],
    "queue publish": ["c"], "queue channels": [], "queue stats": [], "queue consumers list": ["c"],
    "queue retention show": ["c"], "queue dead-letters": ["c"], "queue verify": [],
    "queue export": ["$folder/exported"], "queue import": ["$folder/messages.ndjson"],
    "queue salvage": [],
    "database verify": ["$sealed", "--key-file", "$key"],
    "database salvage": ["$sealed", "$folder/salvaged", "--key-file", "$key"],
  ]

  /// The commands that run last, because the others fail after them.
  private static let order = ["queue import", "queue salvage"]

  private func report(_ command: String, _ arguments: [String]) throws -> [[String: Any]] {
    let arguments = arguments.map {
      $0.replacing("$folder", with: home.folder.url.path)
        .replacing("$sealed", with: fixture.folder.path("sealed")).replacing(
          "$key", with: fixture.key)
    }
    let words = command.split(separator: " ").map(String.init)
    let place = words[0] == "database" ? [] : ["--home", home.path]
    let outcome = try Tool.run(
      words + arguments + ["--json"] + place, input: Array("one\ntwo\n".utf8))
    return try outcome.output.split(separator: UInt8(ascii: "\n")).map { line in
      let value = try JSONSerialization.jsonObject(with: Data(line), options: .fragmentsAllowed)
      return try #require(value as? [String: Any], "\(command): \(outcome.text)")
    }
  }

  /// Makes an opened vault, dead letters with two attempts, and a log that retention has shortened.
  private func fill() throws {
    _ = try home.run("create", "v", "--new-password-file", home.folder.path("password"))
    _ = try home.unlocked("set", "v", "token", input: "t0ken")
    _ = try home.run("set", "messaging", "token", input: "t0ken")
    _ = try home.run(
      "queue", "consumers", "add", "c", "default", "--attempts", "2")
    _ = try home.run("queue", "retention", "set", "c", "--age", "500ms", "--keep-acknowledged")
    for reason in ["not yet", "never"] {
      let lease = try home.run("queue", "receive", "c", "--max", "1", "--no-ack", "--ndjson").text
      let token = try #require(lease.firstMatch(of: /"token":"([^"]+)"/)?.output.1)
      _ = try home.run("queue", "release", String(token), "--reason", reason)
    }
    let other = try TestHome.fresh()
    _ = try other.run("queue", "publish", "d", input: "moved\n")
    _ = try other.run("queue", "export", home.folder.path("messages.ndjson"))
  }

  @Test func `every command reports one object, with dates as RFC 3339 and no number over 2^53`()
    throws
  {
    try fill()
    #expect(try Set(Self.commands()) == Set(Self.invocations.keys))
    let commands = Self.invocations.keys.sorted {
      (Self.order.firstIndex(of: $0) ?? -1, $0) < (Self.order.firstIndex(of: $1) ?? -1, $1)
    }
    var dateCount = 0
    for command in commands {
      let lines = try report(command, Self.invocations[command] ?? [])
      #expect(!lines.isEmpty, "\(command)")
      for line in lines { Self.check(line, of: command, &dateCount) }
    }
    #expect(dateCount >= 4)
  }

  @Test func `queue dead-letters reports each attempt and when it failed`() throws {
    try fill()
    let report = try #require(report("queue dead-letters", ["c"]).first)
    #expect(report["channel"] as? String == "c")
    #expect(report["consumer"] as? String == "default")
    let letter = try #require((report["deadLetters"] as? [[String: Any]])?.first)
    #expect(letter["reason"] as? String == "never")
    #expect(letter["attempts"] as? Int == 2)
    let died = try Date(#require(letter["died"] as? String), strategy: .iso8601)
    #expect(abs(died.timeIntervalSinceNow) < 600)
    let failure = try #require((letter["failures"] as? [[String: Any]])?.first)
    #expect(failure["reason"] as? String == "not yet")
    #expect(failure["time"] is String)
  }

  /// The lost rows have timetokens as rowids.
  @Test func `queue salvage reports lost rowids as strings`() throws {
    let many = (0..<400).map { "message \($0) " + String(repeating: "x", count: 200) + "\n" }
    _ = try home.run("queue", "publish", "c", input: many.joined())
    var bytes = try Data(contentsOf: URL(fileURLWithPath: home.database))
    for page in 30..<34 { bytes[page * 4096 + 100] ^= 1 }
    try bytes.write(to: URL(fileURLWithPath: home.database))
    let report = try #require(report("queue salvage", []).first)
    var dateCount = 0
    Self.check(report, of: "queue salvage", &dateCount)
    let findings = (report["pages"] as? [String: Any])?["findings"] as? [String: Any]
    let tables = try #require(findings?["tables"] as? [[String: Any]])
    let ranges = tables.flatMap { $0["lostRanges"] as? [[String: Any]] ?? [] }
    #expect(ranges.contains { ($0["first"] as? String)?.count == 17 })
  }

  // MARK: The rules

  private static func check(_ value: Any, of command: String, _ dateCount: inout Int) {
    switch value {
    case let object as [String: Any]:
      for (name, value) in object {
        let place: Comment = "\(command): \(name) is \(value)"
        if name.firstMatch(of: /^(died|time|until|lastOpening|at|expires|.*(Date|Time))$/) != nil {
          let text = value as? String ?? ""
          let pattern = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,7})?Z/
          #expect(text.wholeMatch(of: pattern) != nil, place)
          dateCount += 1
        }
        if name.hasSuffix("Seconds") || name.hasSuffix("Days") {
          #expect(value is NSNumber, place)
        }
        if name.lowercased().hasSuffix("timetoken") { #expect(value is String, place) }
        check(value, of: command, &dateCount)
      }
    case let array as [Any]: for value in array { check(value, of: command, &dateCount) }
    case let number as NSNumber:
      #expect(abs(number.doubleValue) <= 0x1p53, "\(command): \(number)")
    default: break
    }
  }

  /// The commands whose help has `--json`.
  private static func commands() throws -> [String] {
    var found: [String] = []
    var commands: [[String]] = [[]]
    while let command = commands.popLast() {
      let help = try Tool.run(command + ["--help"]).text
      var isInSubcommands = false
      for line in help.split(separator: "\n") {
        if !line.hasPrefix(" ") { isInSubcommands = line.hasSuffix("SUBCOMMANDS:") }
        let word = line.dropFirst(2).prefix { $0 != " " }
        if isInSubcommands, line.hasPrefix("  "), word.first?.isLowercase == true {
          commands.append(command + [String(word)])
        }
        if line.hasPrefix("  --json ") { found.append(command.joined(separator: " ")) }
      }
    }
    return found
  }
}
