import Foundation
import MessagingQueue
import NIOCore
import Realtime
import TestSupport
import Testing

@testable import MessagingServer

/// Requests and answers of PubNub's SDKs that no test runs, byte by byte: `go`, `oc`, `js` and `sw` are those for Go,
/// Objective-C, JavaScript and Swift.
@Suite struct StockRequestTests {
  /// A call, and the answer to it, in which PLACE is a timetoken and SECONDS a time.
  private struct Row {
    let why: String
    let target: String
    let answer: String
    let method: String
    let body: [UInt8]

    init(
      _ why: String, _ target: String, _ answer: String, method: String = "GET", body: [UInt8] = []
    ) {
      (self.why, self.target, self.answer, self.method, self.body) =
        (why, target, answer, method, body)
    }
  }

  /// Makes the calls in their order.
  private static func expect(_ rows: [Row]) async throws {
    try await ServerFixture.run { server in
      let keys = ["PUB": server.open.publish, "SUB": server.open.subscribe]
      for row in rows {
        let target = keys.reduce(row.target) { $0.replacing($1.key, with: $1.value) }
        var (sent, text) = ("", "")
        func ask() async throws {
          sent = try await server.send(row.method, target, body: row.body).text
          text = sent.replacing(server.open.subscribe, with: "SUB")
            .replacing(/[0-9]{17}/, with: "PLACE").replacing(/[0-9]{10}/, with: "SECONDS")
        }
        if target.contains("tt=1") {
          // The last events can come after the answer.
          try await eventually("\(row.why): \(text)") {
            try await ask()
            return text == row.answer
          }
        } else {
          try await ask()
          #expect(text == row.answer, "\(row.why)")
        }
        // A signal comes before messages that are not distributed yet.
        guard text == Self.sent, let match = sent.firstMatch(of: /[0-9]{17}/),
          let place = Int64(match.output)
        else { continue }
        try await eventually {
          server.server.gate.home.map { $0.realtime.place.rawValue >= place } ?? false
        }
      }
    }
  }

  private static let sent = #"[1,"Sent","PLACE"]"#

  @Test func `publications and events have the forms that every SDK reads`() async throws {
    func event(_ members: String, publisher: String = "") -> String {
      #"{"a":"0","f":0,\#(publisher)"p":{"t":"PLACE","r":1},"k":"SUB",\#(members)}"#
    }
    try await Self.expect([
      Row(
        "js and go begin without a place", "/v2/subscribe/SUB/c/0?tr=0&ee&uuid=u",
        #"{"t":{"t":"PLACE","r":1},"m":[]}"#),
      Row("a plus is a plus", "/publish/PUB/SUB/0/a+b/0/%22x+y%22?uuid=u+v", Self.sent),
      Row(
        "oc ends the path with a slash", "/publish/PUB/SUB/0/c/0/", Self.sent, method: "POST",
        body: Array(#""oc""#.utf8)),
      Row(
        "js sends zlib", "/publish/PUB/SUB/0/c/0", Self.sent, method: "POST",
        body: [
          0x78, 0x9C, 0x53, 0xCA, 0x2A, 0x56, 0x02, 0x00, 0x02, 0xD2, 0x01, 0x22,
        ]),
      Row("a comma in a name is encoded", "/publish/PUB/SUB/0/d%2Ce/0/1", Self.sent),
      Row("escapes can be in lower case", "/publish/PUB/SUB/0/%c5%bc/0/2", Self.sent),
      Row(
        "go and rb send what no one reads",
        "/publish/PUB/SUB/0/c/0/3?seqn=1&ortt=%7B%22t%22%3A1%7D&l_pub=0.1&requestid=x", Self.sent),
      Row("a signal", "/signal/PUB/SUB/0/c/0/4", Self.sent),
      // A member that is null, an `e` of a message, or a `b` that was not asked for loses the event in js.
      Row(
        "t is first, and no member is null", "/v2/subscribe/SUB/a%2Bb,c,d%2ce,%C5%BC/0?tt=1",
        #"{"t":{"t":"PLACE","r":1},"m":["#
          + [
            event(#""c":"a+b","d":"x+y""#, publisher: #""i":"u+v","#),
            event(#""c":"c","d":"oc""#), event(#""c":"c","d":"js""#),
            event(#""c":"d,e","d":1"#), event(#""c":"ż","d":2"#), event(#""c":"c","d":3"#),
            event(#""c":"c","d":4"#).replacing(#""f":0,"#, with: #""f":0,"e":1,"#),
          ].joined(separator: ",") + "]}"),
      Row(
        "js writes the commas of a list in the query as %2C",
        "/v1/channel-registration/sub-key/SUB/channel-group/g?add=x%2Cy",
        #"{"status":200,"message":"OK","service":"channel-registry","error":false}"#),
      Row("to a member", "/publish/PUB/SUB/0/x/0/5", Self.sent),
      Row(
        "a lone comma is no channel", "/v2/subscribe/SUB/%2C/0?tt=1&channel-group=none%2Cg",
        #"{"t":{"t":"PLACE","r":1},"m":["# + event(#""c":"x","d":5,"b":"g""#) + "]}"),
    ])
  }

  @Test func `presence has the forms that every SDK reads`() async throws {
    let path = "/v2/presence/sub-key/SUB"
    func ok(_ members: String) -> String {
      #"{"status":200,"message":"OK",\#(members)"service":"Presence"}"#
    }
    func event(_ name: String, _ occupancy: Int, _ data: String = "") -> String {
      #"{"a":"0","f":0,"p":{"t":"PLACE","r":1},"k":"SUB","c":"r-pnpres","d":{"action":"\#(name)","uuid":"u",\#(data)"timestamp":SECONDS,"occupancy":\#(occupancy)},"u":{"pn_action":"\#(name)","pn_uuid":"u","pn_timestamp":SECONDS,"pn_occupancy":\#(occupancy),"pn_ispresence":1,"pn_channel":"r"}}"#
    }
    let none = ok(#""uuids":[],"occupancy":0,"#)
    try await Self.expect([
      Row(
        "who subscribes to presence alone is not present", "/v2/subscribe/SUB/r-pnpres/0?uuid=w",
        #"{"t":{"t":"PLACE","r":1},"m":[]}"#),
      Row("no user", "\(path)/channel/r", none),
      Row(
        "a subscription makes present", "/v2/subscribe/SUB/r/0?tt=0&uuid=u",
        #"{"t":{"t":"PLACE","r":1},"m":[]}"#),
      Row("one channel", "\(path)/channel/r", ok(#""uuids":["u"],"occupancy":1,"#)),
      Row("go", "\(path)/channel/r?disable-uuids=1&state=0", ok(#""occupancy":1,"#)),
      Row("others", "\(path)/channel/r?disable_uuids=1&limit=0&offset=0", ok(#""occupancy":1,"#)),
      Row(
        "several channels", "\(path)/channel/r,s",
        ok(
          #""payload":{"channels":{"r":{"uuids":["u"],"occupancy":1}},"total_channels":1,"total_occupancy":1},"#
        )),
      Row(
        "state", "\(path)/channel/r/uuid/u/data?state=%7B%22n%22%3A1.10%7D",
        ok(#""payload":{"n":1.10},"#)),
      Row(
        "a state without `error`, which fails go", "\(path)/channel/r/uuid/u",
        ok(#""payload":{"n":1.10},"channel":"r","uuid":"u","#)),
      Row(
        "no state", "\(path)/channel/r/uuid/u/data",
        #"{"status":400,"error":1,"message":"No state specified.","service":"Presence"}"#),
      Row(
        "oc writes sub_key, py names the presence channel too",
        "/v2/presence/sub_key/SUB/channel/r,r-pnpres/leave?uuid=u", ok(#""action":"leave","#)),
      Row("after the leave", "\(path)/channel/r", none),
      // py's listener ends for good over a number that is none, or data that is no object.
      Row(
        "events", "/v2/subscribe/SUB/r-pnpres/0?tt=1",
        #"{"t":{"t":"PLACE","r":1},"m":["#
          + [
            event("join", 1), event("state-change", 1, #""data":{"n":1.10},"#),
            event("leave", 0, #""data":{"n":1.10},"#),
          ].joined(separator: ",") + "]}"),
    ])
  }

  @Test func `history has the forms that every SDK reads`() async throws {
    let (two, three) = ("/v2/history/sub-key/SUB/channel", "/v3/history/sub-key/SUB")
    func fetched(_ channels: String) -> String {
      #"{"status":200,"error":false,"error_message":"","channels":{\#(channels)}}"#
    }
    try await Self.expect([
      Row("a message", "/publish/PUB/SUB/0/c/0/1?uuid=u", Self.sent),
      Row("without a user", "/publish/PUB/SUB/0/c/0/2", Self.sent),
      Row("numbers", "\(two)/c", "[[1,2],PLACE,PLACE]"),
      Row(
        "texts for js", "\(two)/c?count=1&string_message_token=true",
        #"[[2],"PLACE","PLACE"]"#),
      Row(
        "a bare flag is set", "\(two)/c?count=1&include_token&include_meta",
        #"[[{"message":2,"timetoken":PLACE,"meta":""}],PLACE,PLACE]"#),
      Row("nothing", "\(two)/none", "[[],0,0]"),
      Row("nothing in version 3", "\(three)/channel/none,other", fetched("")),
      // go needs texts: a `uuid` that is null ends it.
      Row(
        "no uuid is null", "\(three)/channel/c?include_uuid=true&include_message_type=true",
        fetched(
          #""c":[{"message":1,"timetoken":"PLACE","uuid":"u","message_type":null},{"message":2,"timetoken":"PLACE","message_type":null}]"#
        )),
      Row(
        "counts, with an encoded list", "\(three)/message-counts/c,d?channelsTimetoken=1%2C1",
        fetched(#""c":2,"d":0"#)),
      Row(
        "a refusal says error_message", "\(three)/channel/c?max=x",
        #"{"status":400,"error":true,"error_message":"Invalid Arguments","channels":{}}"#),
      Row(
        "the words that sw looks for", "/publish/PUB/SUB/0/c/0/%7B", #"[0,"Invalid JSON","PLACE"]"#),
      Row(
        "an unknown key", "/v2/subscribe/sub-c-none/c/0",
        #"{"message":"Invalid Subscribe Key","error":true,"service":"Access Manager","status":400}"#
      ),
    ])
  }

  @Test
  func `a poll that its client drops is no leave, and the next one with its place loses nothing`()
    async throws
  {
    try await ServerFixture.run { server in
      let (pub, sub) = (server.open.publish, server.open.subscribe)
      let path = "/v2/subscribe/\(sub)/c/0?uuid=u"
      let place = try await #require(ServerFixture.place(in: server.get(path).text))
      let dropped = try await server.connectWithoutReading()
      try await dropped.writeAndFlush(
        ByteBuffer(string: "GET \(path)&tt=\(place) HTTP/1.1\r\nHost: a\r\n\r\n"))
      try await server.waitForPolls(1)
      try await dropped.close()
      try await server.waitForPolls(0)
      _ = try await server.get("/publish/\(pub)/\(sub)/0/c/0/1")
      #expect(try await server.get("\(path)&tt=\(place)").text.contains(#""d":1"#))
      let here = try await server.get("/v2/presence/sub-key/\(sub)/channel/c").text
      #expect(here.contains(#""uuids":["u"]"#))
    }
  }
}
