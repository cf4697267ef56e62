import AccessControl
import MessagingQueue
import StrictJSON
import TestSupport
import Testing

@testable import MessagingServer

/// Bytes to values and back, with the traps of stock clients by name.
@Suite struct PusherCodecTests {
  private func command(_ text: String) -> PusherCommand? { PusherCommand(Array(text.utf8)) }
  private func text(_ event: PusherEvent) -> String { String(decoding: event.bytes, as: UTF8.self) }

  // MARK: - What clients send

  @Test(arguments: [
    #"{"event":"pusher:ping","data":{}}"#, #"{"event": "pusher:ping", "data": ""}"#,
    #"{"event":"pusher:ping"}"#,
  ])
  func `a ping comes with an object, a string or no data`(ping: String) {
    #expect(command(ping) == .ping)
    #expect(command(ping.replacing("ping", with: "pong")) == .pong)
  }

  @Test func `channel_data keeps its bytes, white space and escapes included`() {
    let data = #"{\"user_id\": \"\\u00e9\", \"user_info\": {}}"#
    let frame =
      #"{"event":"pusher:subscribe","data":{"channel":"presence-a","auth":"k:c","channel_data":""#
      + data + #""}}"#
    #expect(
      command(frame)
        == .subscribe(
          channel: "presence-a", auth: "k:c",
          channelData: #"{"user_id": "\u00e9", "user_info": {}}"#))
  }

  @Test func `JavaScript sends an empty auth for a public channel, others none`() {
    for auth in [#","auth":"""#, "", #","auth":null"#] {
      let frame = #"{"event":"pusher:subscribe","data":{"channel":"a"\#(auth)}}"#
      #expect(command(frame) == .subscribe(channel: "a", auth: "", channelData: nil))
    }
  }

  @Test func `the data of a client event becomes a string`() {
    for (sent, read) in [
      (#"{"n": 1.50}"#, #"{"n":1.50}"#), (#""a\u00e9""#, "aé"), ("null", "null"),
      ("[1,true]", "[1,true]"),
    ] {
      let frame = #"{"event":"client-x","channel":"private-a","data":\#(sent)}"#
      #expect(
        command(frame)
          == .clientEvent(name: "client-x", channel: "private-a", data: Array(read.utf8)))
    }
  }

  @Test(arguments: [
    "", "x", "[]", "{}", #"{"event":1}"#, #"{"event":"pusher:subscribe"}"#,
    #"{"event":"pusher:subscribe","data":"{\"channel\":\"a\"}"}"#,
    #"{"event":"pusher:subscribe","data":{"channel":1}}"#,
    #"{"event":"pusher:subscribe","data":{"channel":"a","auth":1}}"#,
    #"{"event":"pusher:subscribe","data":{"channel":"a","channel_data":{}}}"#,
    #"{"event":"pusher:unsubscribe","data":{}}"#, #"{"event":"client-x","data":1}"#,
    #"{"event":"pusher:ping","event":"pusher:ping"}"#, #"{"event":"client-\ud800"}"#,
    String(repeating: "[", count: 100_000),
  ])
  func `a message that is not valid is none`(message: String) {
    #expect(command(message) == nil)
  }

  @Test func `other events are not known`() {
    #expect(command(#"{"event":"pusher:signin","data":{}}"#) == .unknown)
    #expect(command(#"{"event":"x","channel":"a"}"#) == .unknown)
  }

  @Test func `frames with random changes are read or refused, and bodies too`() {
    var generator = SeededRandom(seed: 1)
    let frames = [
      #"{"event":"pusher:subscribe","data":{"channel":"presence-a","auth":"k:c","channel_data":"{\"user_id\":1}"}}"#,
      #"{"event":"client-x","channel":"private-a","data":{"n":[1,"\u00e9"]}}"#,
      #"{"name":"e","channels":["a"],"data":"1","socket_id":"1.2","info":"user_count"}"#,
    ]
    for _ in 0..<20_000 {
      var bytes = Array((frames.randomElement(using: &generator) ?? "").utf8)
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let index = Int.random(in: bytes.indices, using: &generator)
        bytes[index] = UInt8.random(in: 0...255, using: &generator)
      }
      if case .subscribe(_, _, let data?) = PusherCommand(bytes) { _ = try? PusherMember(data) }
      _ = try? PusherTrigger(bytes)
      _ = try? PusherTrigger.batch(bytes)
    }
  }

  // MARK: - What the server sends

  private func message(
    _ text: String, _ change: (inout MessageNotes) -> Void
  ) throws -> PusherEvent {
    var notes = MessageNotes()
    change(&notes)
    let message = LogMessage(
      timetoken: try #require(Timetoken(rawValue: 17_000_000_000_000_000)),
      channel: try Channel("shop/a"), payload: Array(text.utf8), headers: notes.headers)
    return .message(try #require(PusherMessage(message)))
  }

  @Test func `data is a string everywhere, but an object in an error, without a channel`() throws {
    var roster = PusherRoster()
    let member = try PusherMember(#"{"user_id":1,"user_info":{"n":"é"}}"#)
    _ = try roster.add(member)
    let texts = [
      text(.established(socketID: "1.2")), text(.pong),
      text(.subscribed(channel: "a", roster: nil)),
      text(.subscribed(channel: "presence-a", roster: roster)),
      text(.refused(channel: "private-a", .unauthorized("why"))), text(.cacheMiss(channel: "a")),
      text(.memberAdded(channel: "presence-a", member)),
      text(.memberRemoved(channel: "presence-a", userID: "1")),
      text(try message(#"{"x":1}"#) { $0.eventName = "e" }),
      text(
        try message("t") {
          $0.eventName = "\""
          $0.userID = "u"
        }),
      text(.error(code: 4001, message: "why")), text(.error(code: nil, message: "why")),
    ]
    #expect(
      texts == [
        #"{"event":"pusher:connection_established","data":"{\"socket_id\":\"1.2\",\"activity_timeout\":120}"}"#,
        #"{"event":"pusher:pong","data":"{}"}"#,
        #"{"event":"pusher_internal:subscription_succeeded","channel":"a","data":"{}"}"#,
        #"{"event":"pusher_internal:subscription_succeeded","channel":"presence-a","data":"{\"presence\":{\"ids\":[\"1\"],\"hash\":{\"1\":{\"n\":\"é\"}},\"count\":1}}"}"#,
        #"{"event":"pusher:subscription_error","channel":"private-a","data":"{\"type\":\"AuthError\",\"error\":\"why\",\"status\":401}"}"#,
        #"{"event":"pusher:cache_miss","channel":"a","data":"{}"}"#,
        #"{"event":"pusher_internal:member_added","channel":"presence-a","data":"{\"user_id\":\"1\",\"user_info\":{\"n\":\"é\"}}"}"#,
        #"{"event":"pusher_internal:member_removed","channel":"presence-a","data":"{\"user_id\":\"1\"}"}"#,
        #"{"event":"e","channel":"a","data":"{\"x\":1}"}"#,
        #"{"event":"\"","channel":"a","data":"t","user_id":"u"}"#,
        #"{"event":"pusher:error","data":{"code":4001,"message":"why"}}"#,
        #"{"event":"pusher:error","data":{"code":null,"message":"why"}}"#,
      ])
    for text in texts { #expect(JSONText.isValid(Array(text.utf8))) }
  }

  // MARK: - Names and members

  @Test(
    arguments: [
      ("private-encrypted-a", .encrypted, false), ("private-encrypted-cache-a", .encrypted, true),
      ("private-a", .private, false), ("private-cache-a", .private, true),
      ("presence-a", .presence, false), ("presence-cache-a", .presence, true),
      ("cache-a", .public, true), ("a", .public, false), ("my-private-x", .public, false),
      ("privatea", .public, false), ("my-cache-x", .public, false), ("a_-=@,.;Z9", .public, false),
    ] as [(String, PusherKind, Bool)])
  func `the beginning of a name says what the channel is`(
    name: String, kind: PusherKind, isCache: Bool
  ) throws {
    let channel = try #require(PusherChannel(name))
    #expect((channel.kind, channel.isCache) == (kind, isCache))
  }

  @Test func `a name has 1 to 164 characters of Pusher's set`() {
    #expect(PusherChannel(String(repeating: "a", count: 164)) != nil)
    for name in [
      "", String(repeating: "a", count: 165), "a b", "a:b", "a/b", "é", "#a", "a*", "a\0",
      "a\u{301}",
    ] {
      #expect(PusherChannel(name) == nil)
      #expect(!PusherChannel.isPublishable(name))
    }
    #expect(PusherChannel("#server-to-user-1") == nil)
    #expect(PusherChannel.isPublishable("#server-to-user-1"))
    #expect(!PusherChannel.isPublishable("#server-to-user-"))
  }

  @Test func `a user's id can be a number, and its limits are Pusher's`() throws {
    #expect(
      try PusherMember(#"{"user_id":10}"#) == PusherMember(id: "10", info: Array("null".utf8)))
    let most = String(repeating: "é", count: 128)
    #expect(try PusherMember(#"{"user_id":"\#(most)"}"#).id == most)
    for data in ["", "[]", "{}", #"{"user_id":""}"#, #"{"user_id":null}"#, #"{"user_id":1.5}"#] {
      #expect(throws: PusherRefusal.self) { try PusherMember(data) }
    }
    #expect(throws: PusherRefusal.limit("user_id has more than 128 characters")) {
      try PusherMember(#"{"user_id":"\#(most)x"}"#)
    }
    let info = String(repeating: "x", count: 1022)
    _ = try PusherMember(#"{"user_id":"1","user_info":"\#(info)"}"#)
    #expect(throws: PusherRefusal.limit("user_info has more than 1024 bytes")) {
      try PusherMember(#"{"user_id":"1","user_info":"\#(info)x"}"#)
    }
  }

  @Test func `a roster has each user once, and room for another connection of one`() throws {
    var roster = PusherRoster()
    for number in 0..<100 {
      #expect(try roster.add(PusherMember(id: "\(number)", info: Array("1".utf8))))
    }
    #expect(throws: PusherRefusal.limit("the channel has 100 members")) {
      try roster.add(PusherMember(id: "100", info: []))
    }
    #expect(try !roster.add(PusherMember(id: "7", info: Array("2".utf8))))
    #expect(roster.count == 100)
    #expect(roster.json.contains(#""7":1"#))
    let removals = (0..<3).map { _ in roster.remove("7") }
    #expect(removals == [false, true, false])
    #expect(roster.count == 99)
  }

  // MARK: - Handshake

  @Test(
    arguments: [
      ("/app/k?client=Pysher&version=1.0.7&protocol=6", nil),
      ("/app/k?protocol=7&client=js&version=8.6.0&flash=false", nil),
      ("/base/app/k?protocol=5", nil), ("/app/k", .noVersion), ("/app/k?protocol=", .noVersion),
      ("/app/k?protocol=seven", .malformedVersion), ("/app/k?protocol=-7", .malformedVersion),
      ("/app/k?protocol=4", .unsupportedVersion), ("/app/k?protocol=8", .unsupportedVersion),
      ("/app/k?protocol=99999999999999999999", .malformedVersion),
    ] as [(String, PusherEnding?)])
  func `the version is checked, wherever it is in the query`(
    target: String, ending: PusherEnding?
  ) throws {
    let connecting = try #require(
      PusherConnecting(RawRequest(method: "GET", target: Array(target.utf8))))
    #expect(connecting.key == "k")
    var found: PusherEnding?
    do { try connecting.checkVersion() } catch { found = error }
    #expect(found == ending)
  }

  @Test(arguments: ["/", "/app", "/app/", "/apps/k", "/app/k/x", "/x/k"])
  func `other paths are none of Pusher's`(target: String) {
    #expect(PusherConnecting(RawRequest(method: "GET", target: Array(target.utf8))) == nil)
  }
}
