import BrokerCluster
import Foundation
import PrivateKeyring
import TestSupport
import Testing

/// What commands print with `--json` and `--ndjson`: `docs/reference/json-output.md`.
@Suite struct JSONReportTests {
  let home: TestHome
  let fixture: ExchangeFixture

  init() throws {
    home = try TestHome.unsecured()
    fixture = try ExchangeFixture(rowCount: 20)
  }

  /// Commands with `--json`, and arguments that make them report something.
  private static let invocations: [(command: String, arguments: [String])] = [
    ("list", []), ("doctor", []), ("status", ["v"]), ("status", ["messaging"]), ("verify", ["v"]),
    ("verify", ["messaging"]), ("items", ["messaging"]), ("policy show", ["messaging"]),
    ("slots list", ["v"]), ("queue publish", ["c"]), ("queue channels", []), ("queue stats", []),
    ("queue limit show", []),
    ("queue consumers list", ["c"]), ("queue retention show", ["c"]),
    ("queue dead-letters list", ["c"]), ("queue show", ["c", "$timetoken"]), ("queue verify", []),
    ("queue export", ["$folder/exported"]),
    ("database verify", ["$sealed", "--key-file", "$key"]),
    ("database salvage", ["$sealed", "$folder/salvaged", "--key-file", "$key"]),
    ("backup", ["$folder/backup"]), ("verify-backup", ["$folder/backup"]),
    ("restore", ["$folder/backup", "$folder/restored"]),
    // The last two, because other commands fail after them.
    ("queue import", ["$folder/messages.ndjson"]), ("queue salvage", []),
  ]

  /// The first message of channel "c".
  private func timetoken() throws -> String {
    let first = try home.run("queue", "history", "c", "--limit", "1", "--ndjson").objects.first
    return first?["timetoken"] as? String ?? ""
  }

  /// The lines that a command prints with `--json`.
  private func report(_ command: String, _ arguments: [String]) throws -> [String] {
    let timetoken = try arguments.contains("$timetoken") ? timetoken() : ""
    let arguments = arguments.map {
      $0.replacing("$folder", with: home.folder.url.path)
        .replacing("$fixtures", with: Repository.path("Fixtures"))
        .replacing("$sealed", with: fixture.sealed)
        .replacing("$key", with: fixture.key)
        .replacing("$timetoken", with: timetoken)
    }
    let words = command.split(separator: " ").map(String.init)
    let hasHome = !["database", "verify-backup", "restore"].contains(words[0])
    let place = hasHome ? ["--home", home.path] : []
    let outcome = try Tool.run(
      words + arguments + ["--json"] + place, input: Array("one\ntwo\n".utf8))
    try #require(!outcome.output.isEmpty, "\(command): \(outcome.errors)")
    return outcome.lines
  }

  /// Makes an opened vault, dead letters with two attempts, and a log that retention has shortened.
  ///
  /// - Returns: lines that `queue receive --ndjson` printed.
  @discardableResult
  private func fill() throws -> [String] {
    try home.createVault()
    _ = try home.unlocked("set", "v", "token", input: "t0ken")
    _ = try home.unlocked("slots", "add", "v", "paper", "--recovery-code")
    _ = try home.run("set", "messaging", "token", input: "t0ken")
    _ = try home.run("queue", "consumers", "add", "c", "default", "--attempts", "2")
    _ = try home.run(
      "queue", "retention", "set", "c", "--age", "500ms", "--count", "9", "--bytes", "999",
      "--keep-acknowledged")
    var lines: [String] = []
    for reason in ["not yet", "never"] {
      let lease = try home.run("queue", "receive", "c", "--max", "1", "--no-ack", "--ndjson").text
      lines.append(lease)
      let token = try #require(lease.firstMatch(of: /"token":"([^"]+)"/)?.output.1)
      _ = try home.run("queue", "release", String(token), "--reason", reason)
    }
    let other = try TestHome.fresh()
    _ = try other.run("queue", "publish", "d", input: "moved\n")
    _ = try other.run("queue", "export", home.folder.path("messages.ndjson"))
    return lines
  }

  /// Flips a bit in each of some pages.
  private func damage(_ path: String, pages: Range<Int>) throws {
    try DamageTests.change(path) { for page in pages { $0[page * 4096 + 100] ^= 1 } }
  }

  /// Publishes enough messages that damaged pages from 30 on lose some of them.
  private func publishMany() throws {
    let many = (0..<400).map { "message \($0) " + String(repeating: "x", count: 200) + "\n" }
    _ = try home.run("queue", "publish", "c", input: many.joined())
  }

  /// Reports of damaged databases, of a damaged queue, and of one that is an older copy.
  private func damageReports() throws -> [(heading: String, lines: [String])] {
    var reports: [(String, [String])] = []
    func take(_ command: String, _ arguments: [String] = []) throws {
      reports.append((command, try report(command, arguments)))
    }
    try damage(fixture.sealed, pages: 3..<5)
    let fixturesKey = try home.folder.file("fixtures.key", Array(repeating: 0x4B, count: 32))
    let damaged =
      [("$sealed", fixture.key)]
      + ["torn-log", "log-header-salts", "super-journal-name"].map {
        ("$fixtures/databases/\($0).db", fixturesKey)
      }
    for (number, (file, key)) in damaged.enumerated() {
      try take("database verify", [file, "--key-file", key])
      try take("database salvage", [file, "$folder/rescued\(number)", "--key-file", key])
    }
    let older = try Data(contentsOf: URL(fileURLWithPath: home.database))
    try publishMany()
    let newer = try Data(contentsOf: URL(fileURLWithPath: home.database))
    try older.write(to: URL(fileURLWithPath: home.database))
    try take("queue verify")
    try newer.write(to: URL(fileURLWithPath: home.database))
    try damage(home.database, pages: 30..<34)
    try take("queue verify")
    try take("queue salvage")
    return reports
  }

  /// Reports of `datavaultd`.
  private func serverReports() throws -> [(heading: String, lines: [String])] {
    let server = try ServerHome()
    let key = try server.file("key", "client's auth key")
    let commands: [(heading: String, arguments: String)] = [
      ("app add", "stock"), ("app list", ""), ("app show", "shop"), ("app show", "shop --secret"),
      ("user add", "shop alice --role staff --user-password-file \(key)"), ("user list", "shop"),
      ("webhook add", "shop https://example.com/a?b=c --event member_added"),
      ("webhook add", "shop https://example.com/"), ("webhook list", "shop"),
      ("grant add", "shop --channel c --role staff --read"),
      ("grant add", "shop --channel a.* --group : --read --write --auth-key-file \(key) --ttl 60"),
      ("grant add", "shop --channel a --consumer c --lease"),
      ("grant add", "shop --whole-application --manage --delete"), ("grant list", "shop"),
      ("token grant", "shop --channel a --read --ttl 1"),
      ("cluster identity", ""),
      ("explain", "shop publish a.b --auth-key-file \(key)"), ("explain", "shop publish a"),
    ]
    let reports = try commands.map { heading, arguments in
      let words = "\(heading) \(arguments) --json".split(separator: " ").map(String.init)
      let report = try server.run(words)
      try #require(!report.output.isEmpty, "\(words): \(report.errors)")
      return (heading, report.lines)
    }
    return try reports + clusterReports(server)
  }

  /// What a home reports that becomes a cluster with one broker.
  private func clusterReports(
    _ server: ServerHome
  ) throws -> [(heading: String, lines: [String])] {
    let brokers = try server.becomeMember()
    defer { withExtendedLifetime(brokers) {} }
    let status = try server.run(["cluster", "status", "--json"]).lines
    let report = try #require(status.first)
    #expect(report.contains(/"version":"\d+\.\d+\.\d+/))
    #expect(report.contains(#""keys":{"newest":1,"oldest":1,"writing":1}"#))
    let text = try server.run(["cluster", "status"]).text
    #expect(text.contains(/\nkeys +1 to 1 are known, key 1 seals\n/))
    #expect(text.contains(/\nversion +\d+\.\d+\.\d+/))
    return [
      ("cluster status", status),
      ("cluster verify", try server.run(["cluster", "verify", "--json"]).lines),
    ]
  }

  @Test(
    .enabled(if: SchemaReader.isAvailable, SchemaReader.skipReason),
    .enabled(if: PrivateKeyring.isAvailable, Comment(rawValue: PrivateKeyring.skipReason)),
    .enabled(if: BrokerCluster.program != nil, Comment(rawValue: BrokerCluster.skipReason)))
  func `every output of every command follows its schema in docs/reference/json-output.md`() throws
  {
    var outputs: [String] = []
    func take(_ heading: String, _ lines: [String]) {
      outputs += lines.map { "\(heading)\t\($0.trimmingCharacters(in: .newlines))\n" }
    }
    take("Printed messages", try fill())
    _ = try home.run(
      "queue", "publish", "m", "--header", "name=value", "--priority", "9", "--delay", "1h",
      "--time-to-live", "2h", input: "delayed\n")
    _ = try Tool.run(["queue", "publish", "m", "--home", home.path], input: [0xFF, 0x0A])
    _ = try home.run("queue", "publish", "m", "--ordering-key", "k", input: "ordered\n")
    let history = try home.run("queue", "history", "m", "--ndjson").lines
    take("Printed messages", history)
    // Every printed message can be published again.
    take("Messages to publish", history)
    if Keyrings.isAvailable {
      _ = try home.unlocked("unlock", "v", "--for", "60s")
      take("status", try report("status", ["v"]))
      _ = try home.run("lock", "v")
    }
    for _ in 0..<3 {
      _ = try home.run("get", "v", "token", "--password-file", home.wrongFile)
    }
    take("status", try report("status", ["v"]))  // while the vault accepts no attempt
    let keyring = try PrivateKeyring()
    try keyring.startUnlocked()
    take(
      "forget", try home.run("forget", "v", "--json", environment: keyring.environment).lines)
    for (command, arguments) in Self.invocations {
      take(command, try report(command, arguments))
    }
    for (heading, lines) in try damageReports() { take(heading, lines) }
    for (heading, lines) in try serverReports() { take(heading, lines) }
    let result = try SchemaReader.validate(outputs)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
  }

  @Test func `queue dead-letters reports each attempt and when it failed`() throws {
    try fill()
    let report = try #require(home.run("queue", "dead-letters", "c", "--json").objects.first)
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
    try publishMany()
    try damage(home.database, pages: 30..<34)
    let report = try report("queue salvage", []).joined()
    #expect(report.contains(/"lostRanges":\[\{"first":"\d{17}"/))
  }
}

/// The Python program that validates outputs with the library `jsonschema`.
enum SchemaReader {
  static let skipReason: Comment = """
    no python3 has jsonschema: install python3-jsonschema, or name a python3 that has it in \
    DATAVAULT_JSONSCHEMA_PYTHON
    """

  static var isAvailable: Bool { interpreter != nil }

  private static let interpreter = Program.python(
    with: "jsonschema", variable: "DATAVAULT_JSONSCHEMA_PYTHON", environment: "jsonschema")

  /// Validates lines of a heading, a tab and an output.
  static func validate(_ lines: [String]) throws -> Program {
    try Program.run(
      #require(interpreter),
      [
        Repository.path("Tests/ReferenceReaders/json_output_reader.py"),
        Repository.path("docs/reference/json-output.md"), Program.datavault, Program.datavaultd,
      ], input: Array(lines.joined().utf8))
  }
}
