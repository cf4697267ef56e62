import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

@Suite struct QueueHistoryTests {
  private let home: TestHome

  init() throws { home = try TestHome.secured() }

  /// Starts `history --follow`, with its errors in a file.
  private func follow(_ arguments: [String] = [], into output: Child.Descriptor) throws -> Child {
    try Child(
      ["queue", "history", "c", "--follow", "--home", home.path] + home.keySource + arguments,
      descriptors: [1: output, 2: .writing(home.folder.path("errors"))])
  }

  /// Waits until the followed text ends so, and returns it.
  private func followed(upTo end: String) throws -> String {
    try eventually {
      let text = home.folder.contents(of: "followed")
      return text?.hasSuffix(end) == true ? text : nil
    }
  }

  @Test func `history prints the log and changes nothing`() throws {
    _ = try home.queue("publish", "c", input: "second\nthird\n")
    for _ in 0..<2 {
      #expect(try home.queue("history", "c").text == "first\nsecond\nthird\n")
    }
    #expect(try home.queue("history", "c", "--limit", "2").text == "first\nsecond\n")
    #expect(
      try home.queue("history", "c", "--newest", "--limit", "2").text == "second\nthird\n")
    #expect(try home.queue("history", "none").text == "")
    #expect(try home.queue("receive", "c").text == "first\nsecond\nthird\n")
  }

  @Test func `history starts after a timetoken, and prints timetokens as JSON`() throws {
    _ = try home.queue("publish", "c", "--ndjson", input: #"{"payload":"a\nb"}"#)
    let lines = try home.queue("history", "c", "--ndjson").lines
    #expect(lines.count == 2)
    let timetoken = String(lines[0].dropFirst(#"{"timetoken":""#.count).prefix(17))
    #expect(lines[0] == #"{"timetoken":"\#(timetoken)","channel":"c","payload":"first"}"#)
    let rest = try home.queue("history", "c", "--after", timetoken, "--ndjson")
    #expect(rest.text == lines[1] + "\n")
    let newest = try home.queue("history", "c", "--newest", "--after", timetoken, "--ndjson")
    #expect(newest.text == lines[1] + "\n")
    let plain = try home.queue("history", "c").expect(65, says: "hint: give --ndjson")
    #expect(plain.text == "first\n")
  }

  @Test func `history --follow prints the messages that another process publishes`() throws {
    let follower = try follow(into: .writing(home.folder.path("followed")))
    #expect(try followed(upTo: "first\n") == "first\n")
    _ = try home.queue("publish", "c", input: "second\n")
    #expect(try followed(upTo: "second\n") == "first\nsecond\n")
    _ = try home.queue("publish", "c", input: "third\nfourth\n")
    #expect(try followed(upTo: "fourth\n") == "first\nsecond\nthird\nfourth\n")
    kill(follower.id, SIGTERM)
    #expect(follower.wait() == 128 + SIGTERM)
  }

  @Test func `history --follow reports how many messages were acknowledged before it printed them`()
    throws
  {
    let total = 12_000
    _ = try home.queue("publish", "c", input: (1..<total).map { "message \($0)\n" }.joined())
    // A full pipe blocks the follower.
    let pipe = Pipe()
    let follower = try follow(into: .inherited(pipe.fileHandleForWriting.fileDescriptor))
    try pipe.fileHandleForWriting.close()
    #expect(try pipe.fileHandleForReading.read(upToCount: 1)?.count == 1)
    #expect(try home.queue("receive", "c").output.count > 100_000)
    let newlines = Mutex(0)
    let reading = Thread { [descriptor = pipe.fileHandleForReading.fileDescriptor] in
      var buffer = [UInt8](repeating: 0, count: 4096)
      while case let count = read(descriptor, &buffer, buffer.count), count > 0 {
        newlines.withLock { $0 += buffer[..<count].count { $0 == UInt8(ascii: "\n") } }
      }
    }
    reading.start()
    #expect(follower.wait() == 66)
    try eventually { reading.isFinished }
    withExtendedLifetime(pipe) {}
    let printedCount = newlines.withLock { $0 }
    #expect(printedCount < total)
    let told = "datavault: \(total - printedCount) messages of c were acknowledged or expired"
    #expect(home.folder.contents(of: "errors")?.contains(told) == true)
  }

  @Test func `history --follow starts at the newest messages or after a timetoken`() throws {
    _ = try home.queue("publish", "c", input: "second\nthird\n")
    let messages = try home.queue("history", "c", "--ndjson").objects
    let second = try #require(messages[1]["timetoken"] as? String)
    func output(_ arguments: String...) throws -> String {
      let follower = try follow(arguments, into: .writing(home.folder.path("followed")))
      defer {
        kill(follower.id, SIGTERM)
        _ = follower.wait()
      }
      return try followed(upTo: "third\n")
    }
    #expect(try output("--newest", "--limit", "2") == "second\nthird\n")
    #expect(try output("--after", second) == "third\n")
    #expect(try output("--newest", "--after", second) == "third\n")
  }

  @Test func `history refuses a limit of 0, and a limit that would leave a gap`() throws {
    #expect(try home.queue("history", "c", "--limit", "0").status == 64)
    #expect(try home.queue("history", "c", "--limit", "1", "--follow").status == 64)
    #expect(try home.queue("history", "c", "--after", "yesterday").status == 64)
  }

  @Test func `queue channels prints a table, or JSON with --json`() throws {
    _ = try home.queue("publish", "d", input: "1\n2\n")
    let table = try home.queue("channels").text.split(separator: "\n")
    #expect(table.count == 3)
    #expect(table[1].hasPrefix("c        1         5      1"))
    #expect(table[2].hasPrefix("d        2         2      1"))
    let json = try home.queue("channels", "--json").text
    #expect(
      json.hasPrefix(#"{"channels":[{"bytes":5,"channel":"c","messages":1,"newestTimetoken":"1"#))
  }
}
