import Foundation
import TestSupport
import Testing

@Suite struct MessageOptionTests {
  private let home: TestHome

  init() throws {
    home = try TestHome.keyed()
  }

  @Test func `publish gives each message the headers, the key and the time to live`() throws {
    try home.queue(
      "publish", "c", "--header", "type=order", "--header", "note=a=b", "--header", "empty=",
      "--ordering-key", "customer 7", "--time-to-live", "1h", input: "a\nb\n"
    ).expect(0)
    let lines = try home.queue("receive", "c", "--ndjson").objects
    #expect(lines.map { $0["payload"] as? String } == ["a", "b"])
    for line in lines {
      #expect(
        line["headers"] as? [String: String] == ["type": "order", "note": "a=b", "empty": ""])
      #expect(line["orderingKey"] as? String == "customer 7")
      let expires = try #require(line["expires"] as? String)
      #expect(expires.hasSuffix("Z"))
    }
  }

  @Test func `receive prints the most urgent message first`() throws {
    for (text, priority) in [("low", "0"), ("normal", "4"), ("high", "9")] {
      #expect(try home.queue("publish", "c", "--priority", priority, input: text).status == 0)
    }
    let lines = try home.queue("receive", "c", "--ndjson").objects
    #expect(lines.map { $0["payload"] as? String } == ["high", "normal", "low"])
    #expect(lines.map { $0["priority"] as? Int } == [9, nil, 0])
  }

  @Test(arguments: [["--delay", "1h"], ["--at", "2199-01-01T00:00:00Z"]])
  func `a delayed message is in the history and is not received yet`(option: [String]) throws {
    try home.queue(["publish", "c"] + option, input: Array("later".utf8)).expect(0)
    #expect(try home.queue("receive", "c").output.isEmpty)
    let line = try #require(home.queue("history", "c", "--ndjson").objects.first)
    let date = try #require(line["at"] as? String)
    if option[0] == "--at" { #expect(date == option[1]) }
  }

  @Test func `a date in the past delays no message, with any offset`() throws {
    for date in ["2020-02-29T23:59:59.1234567+01:30", "1970-01-01T00:00:00Z"] {
      #expect(try home.queue("publish", "c", "--at", date, input: "now").status == 0)
    }
    #expect(try home.queue("receive", "c").text == "now\nnow\n")
  }

  @Test func `a deduplication id publishes one message once`() throws {
    for text in ["one", "again"] {
      #expect(try home.queue("publish", "c", "--deduplication-id", "7", input: text).status == 0)
    }
    try home.queue("publish", "c", "--deduplication-id", "8", input: "a\nb\n").expect(
      65, says: "line 2 is a second message under one --deduplication-id", "nothing was published",
      "hint: ")
    #expect(try home.queue("receive", "c").text == "one\n")
  }

  @Test(arguments: [
    ["--header", "no value"], ["--header", "=x"], ["--header", "a=1", "--header", "a=2"],
    ["--header", "e\u{301}=1", "--header", "\u{E9}=2"],
    ["--header", "a\nb=1"], ["--ordering-key", ""], ["--priority", "10"], ["--priority", "high"],
    ["--priority", "9", "--ordering-key", "k"], ["--delay", "1"],
    ["--delay", "1h", "--at", "2020-01-01T00:00:00Z"],
    ["--at", "tomorrow"], ["--at", "2026-02-30T00:00:00Z"], ["--at", "2026-01-01"],
    ["--at", "2026-01-01T00:00:00.12345678Z"], ["--at", "2026-01-01T00:00:00"],
    ["--delay", "400d"], ["--time-to-live", "0s"], ["--deduplication-id", ""],
  ])
  func `an invalid message option ends with 64`(options: [String]) throws {
    let home = try TestHome.fresh()
    try home.queue(["publish", "c"] + options, input: [0x61]).expect(64, says: "\nhint: ")
    #expect(!FileManager.default.fileExists(atPath: home.path))
  }

  @Test func `messages printed by receive and history are published again without loss`() throws {
    let input = [
      #"{"payload":"a","headers":{"ä":"x\u0000","b":""},"orderingKey":"k","#
        + #""expires":"2199-12-31T23:59:59.9999999Z"}"#,
      #"{"payloadBase64":"/wA=","priority":7}"#, #"{"payload":"plain"}"#,
    ].joined(separator: "\n")
    #expect(try home.queue("publish", "first", "--ndjson", input: input).status == 0)
    let history = try home.queue("history", "first", "--ndjson")
    let received = try home.queue("receive", "first", "--ndjson")
    try home.queue("publish", "second", "--ndjson", input: received.text).expect(0)
    try home.queue("publish", "third", "--ndjson", input: history.text).expect(0)
    let second = try home.queue("receive", "second", "--ndjson")
    let third = try home.queue("receive", "third", "--ndjson")
    func essence(_ printed: Program) throws -> [NSDictionary] {
      let own = ["timetoken", "channel", "attempt"]
      return try printed.objects.map { line in
        NSDictionary(dictionary: line.filter { !own.contains($0.key) })
      }
    }
    #expect(try essence(received).count == 3)
    #expect(try essence(second) == essence(received))
    #expect(try essence(third) == essence(received))
    received.expect(
      0, prints: #""expires":"2199-12-31T23:59:59.9999999Z""#, #""priority":7"#, #""ä":"x\u0000""#)
  }

  @Test func `a delay in the history is published again exactly`() throws {
    let date = "2199-06-01T12:00:00.0000001Z"
    let input = #"{"payload":"a","at":"\#(date)"}"#
    #expect(try home.queue("publish", "first", "--ndjson", input: input).status == 0)
    let log = try home.queue("history", "first", "--ndjson").text
    #expect(log.contains(#""at":"\#(date)""#))
    #expect(try home.queue("publish", "second", "--ndjson", input: log).status == 0)
    #expect(try home.queue("history", "second", "--ndjson").text.contains(#""at":"\#(date)""#))
  }

  @Test func `a line of JSON overrides the options`() throws {
    let input = """
      {"payload":"a"}
      {"payload":"b","headers":{"type":"line","own":"1"},"orderingKey":"line","timeToLive":"2h"}
      {"payload":"c","deduplicationID":"x"}
      {"payload":"d","deduplicationID":"x"}
      {"payload":"e","delay":"1h"}
      """
    try home.queue(
      "publish", "c", "--ndjson", "--header", "type=option", "--ordering-key", "option",
      input: input
    ).expect(0)
    let lines = try home.queue("receive", "c", "--ndjson").objects
    #expect(lines.map { $0["payload"] as? String } == ["a", "b", "c"])
    #expect(lines.map { $0["orderingKey"] as? String } == ["option", "line", "option"])
    #expect(lines[1]["headers"] as? [String: String] == ["type": "line", "own": "1"])
    #expect(lines[0]["headers"] as? [String: String] == ["type": "option"])
  }

  @Test(arguments: [
    #""headers":[]"#, #""headers":{"a":1}"#, #""priority":10"#, #""priority":"7""#,
    #""priority":1.5"#, #""delay":30"#, #""delay":"30""#, #""at":"soon""#, #""expires":1"#,
    #""delay":"1s","at":"2020-01-01T00:00:00Z""#, #""orderingKey":7"#, #""orderingKey":"""#,
    #""timeToLive":"1s","expires":"2020-01-01T00:00:00Z""#, #""timeToLive":"0s""#,
    #""orderingKey":"k","priority":9"#, #""deduplicationID":"""#,
  ])
  func `publish refuses a line with invalid members and names its number`(
    members: String
  ) throws {
    let input = "{\"payload\":\"good\"}\n{\"payload\":\"bad\",\(members)}\n"
    try home.queue("publish", "c", "--ndjson", input: input)
      .expect(65, says: "line 2", "line 1 is published, no other is", "\nhint: ")
    #expect(try home.queue("receive", "c").text == "good\n")
  }

  @Test func `publish loses no header whose name is equivalent to another`() throws {
    let twins = #"{"payload":"p","headers":{"\u00e9":"1","e\u0301":"2"}}"# + "\n"
    try home.queue("publish", "c", "--ndjson", input: twins)
      .expect(65, says: "line 1 has two headers whose names are equivalent")
    // The line's header replaces the option's, including its name.
    let line = #"{"payload":"p","headers":{"e\u0301":"2"}}"# + "\n"
    try home.queue("publish", "c", "--ndjson", "--header", "\u{E9}=1", input: line).expect(0)
    let printed = try home.queue("receive", "c", "--ndjson").text
    #expect(printed.utf8.contains(0xCC), "\(printed)")
    #expect(printed.contains(#":"2"}"#), "\(printed)")
  }

  @Test func `publish refuses a date that an export cannot carry, and exports the latest one`()
    throws
  {
    try home.queue("publish", "c", "--at", "2286-11-20T17:46:40Z", input: "late\n")
      .expect(64, says: "is too late")
    let line = #"{"payload":"p","expires":"9999-12-31T23:59:59Z"}"# + "\n"
    #expect(try home.queue("publish", "c", "--ndjson", input: line).status != 0)
    #expect(try home.queue("history", "c").text == "")
    try home.queue("publish", "c", "--at", "2286-11-20T17:46:39Z", input: "kept\n").expect(0)
    #expect(try home.queue("export", home.folder.path("messages")).status == 0)
    let other = try TestHome.keyed()
    #expect(try other.queue("import", home.folder.path("messages")).status == 0)
  }

  @Test(arguments: [
    ["consumers", "add", "c", "m", "--attempts", "1000000000"],
    ["retention", "set", "c", "--count", "9007199254740993"],
    ["retention", "set", "c", "--bytes", "9007199254740993"],
  ])
  func `a limit that JSON cannot carry is refused`(arguments: [String]) throws {
    #expect(try home.queue("publish", "c", input: "first\n").status == 0)
    try home.queue(arguments).expect(64, says: "\nhint: use ")
  }

  @Test(arguments: [
    #"{"record":"export","version":1,"highWater":"17000000000000000"}"#,
    #"{"record":"message","timetoken":"17000000000000000","channel":"c","due":"9","payload":"p"}"#,
  ])
  func `publish refuses a line of an export and names queue import`(line: String) throws {
    try home.queue("publish", "c", "--ndjson", input: line + "\n").expect(
      65, says: "line 1 belongs to an export of messages; nothing was published",
      "run datavault queue import")
    // Other lines can have a member of that name.
    try home.queue("publish", "c", "--ndjson", input: #"{"record":"message","payload":"p"}"# + "\n")
      .expect(0)
  }
}
