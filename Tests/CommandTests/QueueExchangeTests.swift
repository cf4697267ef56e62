import Foundation
import Glibc
import TestSupport
import Testing

/// Exporting messages from one home and importing them into another.
@Suite struct QueueExchangeTests {
  private let home: TestHome

  init() throws { home = try TestHome.secured() }

  private static func lines(_ range: Range<Int>) -> String {
    range.map { "message \($0) of those that move\n" }.joined()
  }

  /// An export as an independent reader parses it.
  struct ParsedExport: Decodable {
    struct Message: Decodable { let payload: String }

    let messages: [Message]

    init(_ path: String) throws {
      let script = Repository.path("Tests/ReferenceReaders/messages_reader.py")
      let reader = try Program.run("/usr/bin/python3", [script, path])
      try #require(reader.status == 0)
      self = try JSONDecoder().decode(ParsedExport.self, from: Data(reader.output))
    }
  }

  @Test(.enabled(if: geteuid() == 0))
  func `queue export does not write into a file of another user`() throws {
    let file = home.folder.path("export")
    try home.folder.file("export.partial", [])
    chown(file + ".partial", 65534, 65534)
    try home.queue("export", file).expect(
      77, says: "\(file).partial is not a file of this user alone: it belongs to user 65534",
      "hint: check its owner and remove it")
    #expect(try home.folder.bytes("export.partial") == [])
    try FileManager.default.removeItem(atPath: file + ".partial")
    #expect(try home.queue("export", file).status == 0)
  }

  @Test func `a queue moved to another home does not deliver acknowledged messages again`() throws {
    let other = try TestHome.keyed()
    let file = home.folder.path("export")
    #expect(try home.queue("publish", "m", input: "1\n2\n3\n4\n").status == 0)
    #expect(try home.queue("receive", "m", "--max", "2").text == "1\n2\n")
    let exported = try home.queue("export", file, "--json").expect(0, says: "plaintext")
    #expect(exported.text == #"{"databaseChanged":false,"file":"\#(file)","messages":3}"# + "\n")
    #expect(try ParsedExport(file).messages.count == 3)
    #expect(try home.queue("export", file).status == 73)

    try other.queue("import", file, "--json")
      .expect(0, prints: #""keptTimetokens":3,"messages":3,"newTimetokens":0"#)
    try other.queue("import", file, "--json")
      .expect(0, prints: #""wasAlreadyImported":true"#)
    #expect(try other.queue("receive", "m").text == "3\n4\n")
    #expect(try other.queue("receive", "c").text == "first\n")
    #expect(try other.queue("verify").status == 0)
  }

  @Test func `queue export without a file writes to standard output, and can select channels`()
    throws
  {
    #expect(try home.queue("publish", "m", input: "1\n2\n").status == 0)
    let all = try home.queue("export")
    #expect(all.text.ranges(of: #""record":"message""#).count == 3)
    let one = try home.queue("export", "--channel", "c")
    #expect(one.text.ranges(of: #""record":"message""#).count == 1)
    #expect(try home.queue("export", "--channel", "missing").status == 66)
  }

  @Test func `queue import refuses a damaged file with its line, and a missing file`() throws {
    let other = try TestHome.keyed()
    let file = home.folder.path("export")
    #expect(try home.queue("export", file).status == 0)
    let whole = try home.folder.bytes("export")
    try home.folder.file("cut", whole.dropLast(30))
    try other.queue("import", home.folder.path("cut")).expect(65, says: "line ")
    #expect(try other.queue("import", home.folder.path("missing")).status == 66)
  }

  @Test func `queue import of a missing file creates no home`() throws {
    let new = home.folder.path("new")
    try Tool.run(["queue", "import", home.folder.path("missing"), "--home", new]).expect(66)
    #expect(!FileManager.default.fileExists(atPath: new))
  }

  @Test func `queue export to a full standard output names the cause`() throws {
    let outcome = try Tool.run(
      ["queue", "export", "--home", home.path, "--password-file", home.passwordFile],
      through: ["/bin/sh", "-c", #"exec "$@" >/dev/full"#, "sh"])
    outcome.expect(74, says: "standard output cannot be written: no space left on device")
  }

  @Test func `a killed queue export continues without gaps or duplicates`() throws {
    let count = 20_000
    try home.queue("publish", "m", input: Self.lines(0..<count)).expect(0)
    let expected = try home.queue("history", "m").text
    let file = home.folder.path("export")
    let partial = file + ".partial"
    var killCount = 0
    for byteCount in [1, 300_000, 900_000, 1_500_000] {
      let child = try home.start("queue", "export", file, descriptors: [:])
      killCount += child.killed(when: partial, reaches: byteCount) ? 1 : 0
      // The export finished before the signal.
      if FileManager.default.fileExists(atPath: file) { break }
      let mode = try FileManager.default.attributesOfItem(atPath: partial)
      #expect(mode[.posixPermissions] as? Int == 0o600)
    }
    #expect(killCount > 0)
    let last = try home.queue("export", file)
    #expect(last.status == 0 || last.status == 73, "\(last.errors)")
    #expect(!FileManager.default.fileExists(atPath: partial))
    let parsed = try ParsedExport(file)
    #expect(parsed.messages.count == count + 1)
    // Each byte of these messages has two hexadecimal digits.
    let lines = expected.split(separator: "\n").map {
      $0.utf8.map { String($0, radix: 16) }.joined()
    }
    #expect(parsed.messages.dropFirst().map(\.payload) == lines)
  }

  @Test func `a killed queue import continues, and imports every message once`() throws {
    let other = try TestHome.keyed()
    let count = 20_000
    try home.queue("publish", "m", input: Self.lines(0..<count)).expect(0)
    let expected = try home.queue("history", "m").text
    let file = home.folder.path("export")
    #expect(try home.queue("export", file).status == 0)
    var killCount = 0
    for byteCount in [40_000, 400_000, 900_000, 1_500_000] {
      let child = try Child(["queue", "import", file, "--home", other.path] + other.keySource)
      killCount += child.killed(when: other.database + "-wal", reaches: byteCount) ? 1 : 0
    }
    #expect(killCount > 0)
    try other.queue("import", file, "--json").expect(0)
    #expect(try other.queue("history", "m").text == expected)
    #expect(try other.queue("verify").status == 0)
    try other.queue("import", file, "--json")
      .expect(0, prints: #""wasAlreadyImported":true"#)
    #expect(try other.queue("receive", "m").text == expected)
  }

  @Test func `queue verify reports damage, and after queue salvage the messages are received`()
    throws
  {
    try home.queue("publish", "m", input: Self.lines(0..<500)).expect(0)
    try home.queue("verify").expect(0, prints: ", consistent\n")
    try DamageTests.change(home.database) { $0[$0.count - 50] ^= 1 }
    let bytes = try Data(contentsOf: URL(fileURLWithPath: home.database))
    try home.queue("verify", "--json")
      .expect(65, says: "datavault queue salvage", prints: #""isClean":false"#)
    let salvage = try home.queue("salvage")
    #expect(salvage.status == 0 || salvage.status == 65, "\(salvage.errors)")
    #expect(salvage.text.contains("messaging.db.damaged-1"))
    #expect(try home.queue("verify").status == 0)
    #expect(try Data(contentsOf: URL(fileURLWithPath: home.database + ".damaged-1")) == bytes)
    let rest = try home.queue("receive", "m").text.split(separator: "\n")
    #expect(rest.count > 400)
    #expect(try home.queue("publish", "m", input: "new\n").status == 0)
  }
}
