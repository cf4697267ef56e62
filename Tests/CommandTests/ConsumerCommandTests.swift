import Foundation
import TestSupport
import Testing

@Suite struct ConsumerCommandTests {
  private let home: TestHome

  init() throws {
    home = try TestHome.keyed()
    _ = try home.queue("publish", "c", input: "a\nb\n")
  }

  @Test func `consumers are added, listed and removed by name`() throws {
    let empty = try home.queue("consumers", "list", "c", "--json").text
    #expect(empty == #"{"channel":"c","consumers":[]}"# + "\n")
    #expect(try home.queue("consumers", "add", "c", "audit", "--attempts", "3").status == 0)
    #expect(try home.queue("receive", "c").text == "a\nb\n")
    try home.queue("consumers", "list", "c", "--json").expect(
      0,
      prints: #"{"consumer":"audit","deadLetters":0,"delayed":0,"leased":0,"maximumAttempts":3,"#,
      #"{"consumer":"default","deadLetters":0,"delayed":0,"leased":0,"ready":0"#)
    // Without a subcommand, `consumers` lists them.
    let table = try home.queue("consumers", "c").text.split(separator: "\n")
      .map { $0.split(separator: " ") }
    #expect(
      table.map { $0.prefix(3) } == [
        ["CONSUMER", "ATTEMPTS", "READY"], ["audit", "3", "2"], ["default", "any", "0"],
      ])
    #expect(try home.queue("consumers", "remove", "c", "audit").status == 0)
    // No consumer needs the messages, so the log is empty.
    #expect(try home.queue("history", "c").output.isEmpty)
    #expect(try !home.queue("consumers", "c").text.contains("audit"))
  }

  @Test func `a receive that acknowledges nothing adds its consumer, too`() throws {
    try home.queue("receive", "new", "--consumer", "y", "--no-ack").expect(0)
    _ = try home.queue("publish", "new", input: "a\n")
    #expect(try home.queue("receive", "new").text == "a\n")
    #expect(try home.queue("receive", "new", "--consumer", "y").text == "a\n")
  }

  @Test func `an attempt limit creates dead letters, and can be removed`() throws {
    #expect(try home.queue("consumers", "add", "c", "default", "--attempts", "1").status == 0)
    _ = try home.queue("receive", "c", "--max", "1", "--no-ack", "--lease", "1ms")
    #expect(try home.queue("receive", "c").text == "b\n")
    #expect(try home.queue("dead-letters", "c").text.split(separator: "\n").count == 2)
    #expect(try home.queue("consumers", "add", "c", "default").status == 0)
    #expect(try !home.queue("consumers", "c", "--json").text.contains("maximumAttempts"))
  }

  @Test func `a missing or invalid consumer ends with its exit code and a hint`() throws {
    for (arguments, status) in [
      (["remove", "c", "unknown"], 66), (["remove", "none", "default"], 66),
      (["add", "c", "x", "--attempts", "0"], 64), (["add", "c", "a\nb"], 64), (["add", "c"], 64),
    ] as [([String], Int32)] {
      try home.queue(["consumers"] + arguments)
        .expect(status, of: "\(arguments)", says: "\nhint: ")
    }
  }

  @Test func `retention shows and changes each setting of a channel`() throws {
    #expect(
      try home.queue("retention", "show", "c", "--json").text
        == #"{"channel":"c","discardsUnacknowledged":false,"keepsAcknowledged":false}"# + "\n")
    try home.queue(
      "retention", "set", "c", "--age", "7d", "--count", "1000", "--bytes", "5000000",
      "--keep-acknowledged", "--discard-unacknowledged"
    ).expect(0)
    #expect(
      try home.queue("retention", "c", "--json").text == """
        {"ageSeconds":604800,"bytes":5000000,"channel":"c","count":1000,\
        "discardsUnacknowledged":true,"keepsAcknowledged":true}\n
        """)
    try home.queue(
      "retention", "set", "c", "--age", "none", "--bytes", "none", "--no-discard-unacknowledged"
    ).expect(0)
    try home.queue("retention", "c").expect(
      0, prints: "age              none\n", "count            1000 messages\n",
      "acknowledged     kept\n", "unacknowledged   kept\n")
    #expect(try home.queue("receive", "c").text == "a\nb\n")
    #expect(try home.queue("history", "c").text == "a\nb\n")
    try home.queue("retention", "set", "c", "--no-keep-acknowledged", "--count", "none").expect(0)
    #expect(try home.queue("retention", "c", "--json").text.contains(#""keepsAcknowledged":false"#))
  }

  @Test(arguments: [
    [], ["--age", "7"], ["--count", "-1"], ["--count", "many"], ["--bytes", "1MB"],
    ["--age", "40000d"],
  ])
  func `an invalid retention ends with 64`(options: [String]) throws {
    try home.queue(["retention", "set", "c"] + options).expect(64, says: "\nhint: ")
  }
}
