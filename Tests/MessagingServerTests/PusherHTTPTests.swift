import AccessControl
import ApplicationStore
import Foundation
import NIOHTTP1
import StrictJSON
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingServer

/// The HTTP API of Pusher, with requests that no stock SDK sends, or that other SDKs than Python's send.
@Suite struct PusherHTTPTests {
  /// The target of a request that the application signs.
  private func target(
    _ method: String, _ path: String, _ keys: ServerFixture.Keys, query: String = "",
    body: String = "", at date: Date = Date()
  ) throws -> String {
    let bytes = Array(body.utf8)
    var parameters = query.split(separator: "&").map(String.init)
    parameters += [
      "auth_key=\(keys.subscribe)", "auth_timestamp=\(Int(date.timeIntervalSince1970))",
      "auth_version=1.0",
    ]
    if !body.isEmpty {
      parameters.append("body_md5=\(try LegacyDigest.md5(bytes.span.bytes).hexadecimal)")
    }
    let text = parameters.sorted().joined(separator: "&")
    let message = Array("\(method)\n\(path)\n\(text)".utf8)
    let code = try HMAC.sha256(key: secret(keys.secretKey), message: message.span.bytes)
    return "\(path)?\(text)&auth_signature=\(code.hexadecimal)"
  }

  private func post(
    _ server: ServerFixture, _ body: String, to call: String = "events"
  ) async throws -> HTTPRequester.Answer {
    let path = "/apps/\(server.open.record.id)/\(call)"
    return try await server.send(
      "POST", target("POST", path, server.open, body: body), body: Array(body.utf8))
  }

  private func get(
    _ server: ServerFixture, _ call: String, _ query: String = ""
  ) async throws -> HTTPRequester.Answer {
    let path = "/apps/\(server.open.record.id)/\(call)"
    return try await server.get(target("GET", path, server.open, query: query))
  }

  @Test func `Swift's SDK writes nulls, and every answer is a JSON object`() async throws {
    try await ServerFixture.run { server in
      let answer = try await post(
        server, #"{"name":"e","channel":"a","channels":null,"data":"1","socket_id":null}"#)
      #expect((answer.status, answer.text) == (200, "{}"))
      let info = try await post(
        server,
        #"{"name":"e","channels":["a","presence-a"],"data":"1","info":"user_count,subscription_count"}"#
      )
      #expect(
        info.text
          == #"{"channels":{"a":{"subscription_count":0},"presence-a":{"user_count":0}}}"#)
      let batch = try await post(
        server,
        #"{"batch":[{"name":"e","channel":"a","data":"1","info":"subscription_count"},{"name":"e","channel":"b","data":"1"}]}"#,
        to: "batch_events")
      #expect(batch.text == #"{"batch":[{"subscription_count":0},{}]}"#)
      #expect(try await get(server, "channels").text == #"{"channels":{}}"#)
      #expect(try await get(server, "channels/presence-a/users").text == #"{"users":[]}"#)
    }
  }

  @Test func `the header says application/json`() async throws {
    try await ServerFixture.run { server in
      let target = try self.target("GET", "/apps/\(server.open.record.id)/channels", server.open)
      for target in [target, "/apps/1/events", "/apps/1/x"] {
        let answer = try await server.get(target)
        #expect(answer.headers["Content-Type"] == ["application/json"])
        #expect(answer.text.hasSuffix("}"))
      }
    }
  }

  @Test func `an event reaches PubNub's clients, as JSON or as a string`() async throws {
    try await ServerFixture.run { server in
      let sub = server.open.subscribe
      let first = try await server.get("/v2/subscribe/\(sub)/a/0?tt=0")
      var place = try #require(ServerFixture.place(in: first.text))
      _ = try await post(
        server, #"{"name":"e","channel":"a","data":"{\"n\":1}","socket_id":"1.2"}"#)
      _ = try await post(server, #"{"name":"e","channel":"a","data":"a text"}"#)
      // An answer has what was distributed before it: one event or both.
      var events = ""
      for _ in 0..<2 where !events.contains("a text") {
        let answer = try await server.get("/v2/subscribe/\(sub)/a/0?tt=\(place)")
        place = try #require(ServerFixture.place(in: answer.text))
        events += answer.text
      }
      #expect(events.contains(#""d":{"n":1}"#))
      #expect(events.contains(#""d":"a text""#))
      let history = try await server.get("/v2/history/sub-key/\(sub)/channel/a")
      #expect(history.text.hasPrefix(#"[[{"n":1},"a text"],"#))
    }
  }

  @Test(arguments: [
    (400, "x"), (400, "[]"), (400, "{}"), (400, #"{"name":"e","channel":"a"}"#),
    (400, #"{"name":"e","channel":"a","data":{}}"#),
    (400, #"{"name":"e","channels":[],"data":"1"}"#),
    (400, #"{"name":"e","channels":[1],"data":"1"}"#),
    (400, #"{"name":1,"channel":"a","data":"1"}"#),
    (400, #"{"name":"e","channel":"a b","data":"1"}"#),
    (400, #"{"name":"e","channel":"a/b","data":"1"}"#),
    (400, #"{"name":"pusher_internal:x","channel":"a","data":"1"}"#),
    (400, #"{"name":"e","channel":"a","data":"1","socket_id":"1.2:private-a"}"#),
    (400, #"{"name":"e","channel":"a","data":"1","info":"x"}"#),
    (400, #"{"name":"e","name":"e","channel":"a","data":"1"}"#),
    (403, #"{"name":"e","channel":"a-pnpres","data":"1"}"#),
    (200, ##"{"name":"e","channel":"#server-to-user-1","data":"1"}"##),
  ])
  func `a body that is not valid is refused`(status: Int, body: String) async throws {
    try await ServerFixture.run { server in
      let answer = try await post(server, body)
      #expect(answer.status == status)
      #expect(answer.text.hasPrefix(status == 200 ? "{}" : #"{"error":""#))
    }
  }

  private static func channels(_ count: Int) -> String {
    let names = (0..<count).map { #""c\#($0)""# }.joined(separator: ",")
    return #"{"name":"e","channels":[\#(names)],"data":"1"}"#
  }

  private static func batch(_ count: Int) -> String {
    let event = #"{"name":"e","channel":"a","data":"1"}"#
    return #"{"batch":[\#(Array(repeating: event, count: count).joined(separator: ","))]}"#
  }

  private static func event(nameCount: Int = 1, dataCount: Int = 1) -> String {
    let name = String(repeating: "é", count: nameCount)
    let data = String(repeating: "x", count: dataCount)
    return #"{"name":"\#(name)","channel":"a","data":"\#(data)"}"#
  }

  @Test(arguments: [
    (200, "events", channels(100)), (400, "events", channels(101)),
    (200, "batch_events", batch(10)), (400, "batch_events", batch(11)),
    (200, "events", event(nameCount: 200)), (400, "events", event(nameCount: 201)),
    (200, "events", event(dataCount: 10_240)), (413, "events", event(dataCount: 10_241)),
  ])
  func `channels, events, names and data are bounded as Pusher bounds them`(
    status: Int, call: String, body: String
  ) async throws {
    try await ServerFixture.run { server in
      let answer = try await post(server, body, to: call)
      #expect(answer.status == status)
    }
  }

  @Test func `a batch is published as a whole, or not at all`() async throws {
    try await ServerFixture.run { server in
      let answer = try await post(
        server,
        #"{"batch":[{"name":"e","channel":"a","data":"1"},{"name":"e","channel":"a-pnpres","data":"1"}]}"#,
        to: "batch_events")
      #expect(answer.status == 403)
      let history = try await server.get("/v2/history/sub-key/\(server.open.subscribe)/channel/a")
      #expect(history.text == "[[],0,0]")
    }
  }

  @Test func `a request needs its own signature, a near time and its own application`() async throws
  {
    try await ServerFixture.run { server in
      let path = "/apps/\(server.open.record.id)/channels"
      let good = try target("GET", path, server.open)
      #expect(try await server.get(good).status == 200)
      for (status, target) in [
        (401, path), (401, good + "&x=1"), (401, good.replacing("auth_version=1.0", with: "")),
        (401, try target("GET", path, server.open, at: Date() - 700)),
        (401, try target("GET", path, server.open, at: Date() + 700)),
        (401, try target("GET", path, server.closed)),
        (404, try target("GET", "/apps/999/channels", server.open)),
        (404, try target("GET", "/apps/x/channels", server.open)),
        (404, try target("GET", "/apps/\(server.open.record.id)/x", server.open)),
      ] {
        let answer = try await server.get(target)
        #expect(answer.status == status, "\(target): \(answer.text)")
      }
      let body = #"{"name":"e","channel":"a","data":"1"}"#
      let events = "/apps/\(server.open.record.id)/events"
      let unsigned = try target("POST", events, server.open)
      #expect(try await server.send("POST", unsigned, body: Array(body.utf8)).status == 401)
    }
  }

  @Test func `a signed request is good for its call and its body alone, however it is divided`()
    async throws
  {
    try await ServerFixture.run { server in
      let (path, body) = (
        "/apps/\(server.open.record.id)/events", #"{"name":"e","channel":"a","data":"1"}"#
      )
      let forged = Array(#"{"name":"e","channel":"a","data":"2"}"#.utf8)
      let good = try target("POST", path, server.open, body: body)
      let digest = try LegacyDigest.md5(forged.span.bytes).hexadecimal
      for (method, target, body) in [
        // Replayed with another body, as another call, and for another application.
        ("POST", good, forged), ("GET", good, []),
        ("POST", good.replacing("/events", with: "/batch_events"), Array(body.utf8)),
        ("POST", good.replacing(server.open.subscribe, with: server.closed.subscribe), forged),
        // Shifted: the same text to sign, with the digest in another parameter.
        ("POST", good.replacing("&body_md5=", with: "%26body_md5="), forged),
        (
          "POST", good.replacing("&body_md5=", with: "%26body_md5=") + "&body_md5=\(digest)", forged
        ),
        (
          "POST", good.replacing("&auth_version=1.0", with: "%26auth_version=1.0"), Array(body.utf8)
        ),
        // Added beside what is signed.
        ("POST", good + "&body_md5=\(digest)", forged),
        ("POST", good + "&info=cache", Array(body.utf8)),
        ("POST", good.replacing("events?", with: "events?body_md5=\(digest)&"), forged),
      ] as [(String, String, [UInt8])] {
        let answer = try await server.send(method, target, body: body)
        #expect(answer.status == 401, "\(method) \(target): \(answer.text)")
      }
      let history = "/v2/history/sub-key/\(server.open.subscribe)/channel/a"
      #expect(try await server.get(history).text == "[[],0,0]")
      #expect(try await server.send("POST", good, body: Array(body.utf8)).status == 200)
    }
  }

  @Test func `an application that stores too much gets 429`() async throws {
    try await ServerFixture.run { server in
      try await server.store.setRetention(
        ApplicationRetention(maximumMinutes: 10, maximumByteCount: 1), of: server.open.record.id)
      // Until the server knows the limit.
      let refusal = try await eventually {
        let answer = try await post(server, #"{"name":"e","channel":"a","data":"12"}"#)
        return answer.status == 200 ? nil : answer
      }
      #expect((refusal.status, refusal.text) == (429, #"{"error":"Storage quota exceeded"}"#))
    }
  }

  @Test func `a path without an application terminates connections, as Python's SDK sends it`()
    async throws
  {
    try await ServerFixture.run { server in
      let target = try self.target(
        "POST", "/users/u/terminate_connections", server.open, body: "{}")
      let answer = try await server.send("POST", target, body: Array("{}".utf8))
      #expect((answer.status, answer.text) == (200, "{}"))
    }
  }

  @Test func `logs and metrics have templates, and nothing that a client sent`() async throws {
    let folder = ScratchFolder()
    let writer = try LineWriter(folder("log"), .json)
    let registry = PrometheusRegistry()
    try await ServerFixture.run({
      $0.operations = ServerOperations(registry: registry, accessLog: AccessLog(writer))
    }) { server in
      let socket = try await PusherSocket.connect(server, server.open)
      try await socket.subscribe("channel1")
      _ = try await socket.next("pusher_internal:subscription_succeeded")
      _ = try await post(server, #"{"name":"name1","channel":"channel1","data":"pay1oad"}"#)
      _ = try await socket.next("name1")
      _ = try await get(server, "channels/channel1")
      let routes = [Route.pusherConnection, .pusherEvents, .pusherChannel]
      // The line of a request follows its answer.
      let log = try await eventually {
        await writer.flush(within: .seconds(60))
        let log = folder.contents(of: "log") ?? ""
        return routes.allSatisfy { log.contains(#""route":"\#($0.rawValue)""#) } ? log : nil
      }
      let everything = log + registry.text
      #expect(log.contains(#""application":\#(server.open.record.id),"status":101"#))
      #expect(everything.contains("datavault_server_messages_published_total 1"))
      for word in ["channel1", "name1", "pay1oad", server.open.subscribe, "auth_"] {
        #expect(!everything.contains(word))
      }
    }
  }
}
