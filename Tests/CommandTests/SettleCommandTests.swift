import Foundation
import TestSupport
import Testing

@Suite struct SettleCommandTests {
  let home: TestHome

  init() throws {
    home = try TestHome.keyed()
    _ = try home.queue("publish", "c", input: "a\nb\n")
  }

  @Test func `a lease can be acknowledged only once`() throws {
    let token = try home.lease("--lease", "1h")
    #expect(try home.queue("ack", token).status == 0)
    #expect(try home.queue("ack", token).status == 66)
    #expect(try home.queue("receive", "c").text == "b\n")
  }

  @Test func `a released message is ready immediately, an extended one is not`() throws {
    let first = try home.lease("--lease", "1h")
    #expect(try home.queue("release", first).status == 0)
    let again = try home.lease("--lease", "1h")
    #expect(first.prefix(17) == again.prefix(17))
    #expect(try home.queue("extend", again, "--lease", "2h").status == 0)
    #expect(try home.queue("receive", "c").text == "b\n")
    #expect(try home.queue("release", again, "--delay", "1h").status == 0)
    #expect(try home.queue("receive", "c").text == "")
  }

  @Test func `a rejected message is a dead letter until redrive returns it`() throws {
    #expect(try home.queue("reject", home.lease(), "--reason", "no such order").status == 0)
    let table = try home.queue("dead-letters", "c").text.split(separator: "\n")
    #expect(table.count == 2)
    #expect(table.last?.hasSuffix("no such order") == true)
    let json = try home.queue("dead-letters", "c", "--json").text
    #expect(json.contains(#""reason":"no such order""#) && json.contains(#""attempts":1"#))
    #expect(try home.queue("redrive", "c", "17000000000000000").status == 66)
    #expect(try home.queue("redrive", "c").status == 0)
    #expect(try home.queue("receive", "c").text == "a\nb\n")
  }

  @Test func `each consumer gets every message, and purge deletes them for all`() throws {
    for name in ["one", "two"] {
      _ = try home.lease("--consumer", name, "--lease", "1ms")
    }
    #expect(try home.queue("receive", "c", "--consumer", "one", "--max", "1").text == "a\n")
    #expect(try home.queue("receive", "c", "--consumer", "two").text == "a\nb\n")
    #expect(try home.queue("receive", "c", "--consumer", "one").text == "b\n")
    _ = try home.queue("publish", "c", input: "x\ny\n")
    #expect(try home.queue("purge", "c").status == 0)
    #expect(try home.queue("receive", "c", "--consumer", "two").text == "")
    #expect(try home.queue("compact").status == 0)
  }

  @Test func `an invalid lease token ends with 64`() throws {
    #expect(try home.queue("ack", "17000000000000000-1-00").status == 64)
  }
}
