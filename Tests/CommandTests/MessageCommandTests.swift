import Foundation
import TestSupport
import Testing

/// The commands for single messages.
@Suite struct MessageCommandTests {
  let home: TestHome

  init() throws {
    home = try TestHome.keyed()
    _ = try home.queue("publish", "c", input: "a\nb\n")
  }

  private func timetoken(_ index: Int) throws -> String {
    let lines = try home.queue("history", "c", "--ndjson").objects
    return try #require(lines[index]["timetoken"] as? String)
  }

  @Test func `show names the state of a message for each consumer`() throws {
    let first = try timetoken(0)
    #expect(try home.queue("show", "c", first).text.contains("bytes      1\n"))
    _ = try home.queue("consumers", "add", "c", "x", "--attempts", "3")
    let lease = try home.lease("--lease", "1h")
    let text = try home.queue("show", "c", first).text
    #expect(text.contains(/consumer   default: leased for 3[0-9]{3} s, attempt 1\n/))
    #expect(text.contains("consumer   x: ready, attempt 0 of 3\n"))
    #expect(try home.queue("reject", lease, "--reason", "no such order").status == 0)
    #expect(
      try home.queue("show", "c", first).text.contains("default: deadLetter: no such order"))
    #expect(try home.queue("show", "c", "17000000000000000").status == 66)
    #expect(try home.queue("show", "d", first).status == 66)
  }

  @Test func `peek prints what receive prints next`() throws {
    #expect(try home.queue("peek", "c").text == "a\n")
    #expect(try home.queue("peek", "c", "--max", "9").text == "a\nb\n")
    let object = try #require(try home.queue("peek", "c", "--ndjson").objects.first)
    #expect(object["attempt"] as? Int == 1 && object["token"] == nil)
    #expect(try home.queue("peek", "c", "--max", "0").status == 64)
    #expect(try home.queue("receive", "c").text == "a\nb\n")
    #expect(try home.queue("peek", "c").text == "")
  }

  @Test func `cancel deletes a message that is not leased`() throws {
    let (first, second) = (try timetoken(0), try timetoken(1))
    let lease = try home.lease("--lease", "1h")
    let refused = try home.queue("cancel", "c", first, second)
    #expect(refused.status == 66 && refused.errors.contains("1 of 2 messages are gone, leased"))
    #expect(try home.queue("history", "c").text == "a\n")
    #expect(try home.queue("release", lease).status == 0)
    #expect(try home.queue("cancel", "c", first).status == 0)
    #expect(try home.queue("history", "c").text == "")
  }

  @Test func `dead letters are removed, and moved to another channel`() throws {
    for _ in 0..<2 { _ = try home.queue("reject", home.lease(), "--reason", "no") }
    let first = try #require(
      try home.queue("dead-letters", "list", "c").text.split(separator: "\n").dropFirst().first?
        .split(separator: " ").first.map(String.init))
    #expect(try home.queue("dead-letters", "remove", "c").status == 64)
    #expect(try home.queue("dead-letters", "remove", "c", first).status == 0)
    #expect(try home.queue("dead-letters", "remove", "c", first).status == 66)
    #expect(try home.queue("dead-letters", "move", "c", "--all", "--to", "failed").status == 0)
    #expect(try home.queue("dead-letters", "c").text.split(separator: "\n").count == 1)
    #expect(try home.queue("receive", "failed").text == "b\n")
  }

  @Test func `stats --watch needs a terminal`() throws {
    let refused = try home.queue("stats", "--watch")
    #expect(refused.status == 64 && refused.errors.contains("needs a terminal"))
    #expect(try home.queue("stats", "--watch", "--json").status == 64)
    #expect(try home.queue("stats", "--interval", "1ms").status == 64)
  }
}
