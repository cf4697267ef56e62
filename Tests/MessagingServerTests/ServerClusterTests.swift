import AccessControl
import ApplicationStore
import Foundation
import MessagingQueue
import ReplicationFixture
import TestSupport
import Testing

@testable import MessagingServer

/// The protocols on homes that are several: docs/explanation/replication.md.
@Suite(.timeLimit(.minutes(10))) struct ServerClusterTests {
  private static func publish(_ keys: ServerFixture.Keys, _ channel: String, _ json: String)
    -> String
  {
    "/publish/\(keys.publish)/\(keys.subscribe)/0/\(channel)/0/\(json)"
  }

  private static func subscribe(_ keys: ServerFixture.Keys, _ channel: String, _ place: Substring)
    -> String
  {
    "/v2/subscribe/\(keys.subscribe)/\(channel)/0?tt=\(place)"
  }

  @Test func `what a client publishes at one server, a subscriber of the other gets`() async throws
  {
    try await ServerCluster.run { cluster in
      let (a, b) = (cluster.a.server, cluster.b.server)
      let start = try await b.get(Self.subscribe(b.open, "c", "0"))
      let place = try #require(ServerFixture.place(in: start.text))
      async let events = b.get(Self.subscribe(b.open, "c", place))
      try await b.waitForPolls(1)
      #expect(try await a.get(Self.publish(a.open, "c", "42")).status == 200)
      #expect(try await events.text.contains(#""d":42"#))
    }
  }

  @Test func `a grant at one server takes effect at the other within a second or so`() async throws
  {
    try await ServerCluster.run { cluster in
      let (a, b) = (cluster.a.server, cluster.b.server)
      let history = "/v2/history/sub-key/\(b.closed.subscribe)/channel/c"
      #expect(try await b.get(history).status == 403)
      let key = Grant.Key(
        .channel(try ChannelName("c")), of: a.closed.record.id, holder: .everyone)
      try await a.store.put([Grant(.read, on: key, minutes: 0, start: Date())])
      try await eventually("the other server allows it") {
        try await b.get(history).status == 200
      }
      try await a.store.put([Grant([], on: key, minutes: 0, start: Date())])
      try await eventually("the other server refuses it") {
        try await b.get(history).status == 403
      }
    }
  }

  @Test func `a STOMP worker of one server gets, and settles, what was sent to the other`()
    async throws
  {
    try await ServerCluster.run({
      $0.stompListening = [.init(ListenAddress("127.0.0.1:0")!)]
    }) { cluster in
      let (a, b) = (cluster.a.server, cluster.b.server)
      try await STOMPPeer.connect(b, b.open) { worker in
        try await worker.send("SUBSCRIBE\nid:1\ndestination:/queue/jobs\nack:client-individual\n\n")
        try await STOMPPeer.connect(a, a.open) { sender in
          try await sender.send("SEND\ndestination:/queue/jobs\nreceipt:1\n\nwork")
          #expect(try await sender.next()?["receipt-id"] == "1")
        }
        let job = try #require(try await worker.next())
        #expect(job.body == Array("work".utf8))
        let id = try #require(job["ack"])
        // The result and the acknowledgement in one transaction.
        try await worker.send("BEGIN\ntransaction:t\n\n")
        try await worker.send("SEND\ndestination:/topic/done\ntransaction:t\n\nresult")
        try await worker.send("ACK\nid:\(id)\ntransaction:t\n\n")
        try await worker.send("COMMIT\ntransaction:t\nreceipt:2\n\n")
        #expect(try await worker.next()?["receipt-id"] == "2")
      }
      var results: [String] = []
      try await eventually("the other server has the result once, not \(results)") {
        results = try await a.bodies(of: "shop/done")
        return results == ["result"]
      }
      let consumers = try await a.engine.statistics().channels.first {
        $0.channel.name == "shop/jobs"
      }?
      .consumers
      #expect(consumers?.map(\.readyCount) == [0])
    }
  }

  @Test func `a webhook gets each event once, from one of the servers`() async throws {
    try await ServerCluster.run({ $0.webhooks.allowsPrivate = true }) { cluster in
      let (a, b) = (cluster.a.server, cluster.b.server)
      let receiver = try await WebhookReceiver.start()
      try await a.addWebhook(receiver.url, [.channelOccupied], of: a.open)
      try await eventually("the other server knows it") {
        b.server.gate.home?.directory.webhooks[b.open.record.id]?.isEmpty == false
      }
      var expected: Set<String> = []
      var sockets: [PusherSocket] = []
      for (server, name) in [(a, "a"), (b, "b")] {
        let socket = try await PusherSocket.connect(server, server.open)
        for number in 0..<10 {
          try await socket.subscribe("\(name)\(number)")
          expected.insert(#"{"name":"channel_occupied","channel":"\#(name)\#(number)"}"#)
        }
        sockets.append(socket)
      }
      #expect(Set(try await receiver.waitForEvents(expected.count)) == expected)
      for server in [a, b] {
        try await eventually("each delivery is settled") {
          try await server.waitingWebhookCount == 0
        }
      }
      #expect(receiver.events.count == expected.count)
      for socket in sockets { try await socket.close() }
    }
  }

  @Test func `a server that is cut off refuses for now, holds polls, and goes on afterwards`()
    async throws
  {
    try await ServerCluster.run { cluster in
      let (a, b) = (cluster.a.server, cluster.b.server)
      let start = try await b.get(Self.subscribe(b.open, "c", "0"))
      let place = try #require(ServerFixture.place(in: start.text))
      let socket = try await PusherSocket.connect(b, b.open)
      cluster.b.log.setCutOff(true)
      try await eventually("it knows that it is cut off") { b.server.gate.isCutOff }
      let refused = try await b.get(Self.publish(b.open, "c", "1"))
      #expect(refused.status == 503)
      #expect(refused.text.contains("cut off"))
      #expect(try await b.get("/health/ready").text == #"{"status":"cut-off"}"#)
      #expect(try await b.get("/health/live").status == 200)
      // A connection from before decides on no new subscription.
      try await socket.subscribe("c")
      #expect(try await socket.closeCode() == 4100)
      // The other server goes on, and a poll that waits here gets its message afterwards.
      #expect(try await a.get(Self.publish(a.open, "c", "2")).status == 200)
      async let held = b.get(Self.subscribe(b.open, "c", place))
      try await eventually("the poll is held") { b.server.gate.heldCount == 1 }
      cluster.b.log.setCutOff(false)
      let answer = try await held
      #expect(answer.status == 200)
      let next = try #require(ServerFixture.place(in: answer.text))
      #expect(next == place)
      #expect(try await b.get(Self.subscribe(b.open, "c", next)).text.contains(#""d":2"#))
    }
  }

  @Test func `a home of a cluster is not served without its log`() async throws {
    await #expect(throws: EngineError.self) {
      try await ServerCluster.run({ $0.replicate = nil }) { _ in }
    }
  }
}
