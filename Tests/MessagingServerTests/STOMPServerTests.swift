import AccessControl
import ApplicationStore
import DataVault
import Foundation
import MessagingQueue
import NIOCore
import TestSupport
import Testing

@testable import MessagingServer

/// STOMP over the sockets of a server in this process.
@Suite struct STOMPServerTests {
  @Test(arguments: [1, 5, 100_000])
  func `pipelined messages get their receipts in order, and are in the log in that order`(
    pieces: Int
  ) async throws {
    let count = pieces == 1 ? 20 : 1000
    try await ServerFixture.runWithSTOMP { server in
      try await STOMPPeer.connect(server, server.open) { peer in
        var bytes: [UInt8] = []
        for number in 0..<count {
          bytes += "SEND\ndestination:/topic/c\nreceipt:\(number)\n\n\(number)\0".utf8
        }
        var rest = bytes[...]
        while !rest.isEmpty {
          try await peer.write(Array(rest.prefix(pieces)))
          rest = rest.dropFirst(pieces)
        }
        for number in 0..<count {
          let frame = try await peer.next()
          try #require(frame?["receipt-id"] == "\(number)")
        }
        #expect(try await server.bodies(of: "shop/c") == (0..<count).map { "\($0)" })
      }
    }
  }

  @Test(arguments: [false, true])
  func `nothing behind a refused message is done, in one piece or in two, and its leases go back`(
    isSplit: Bool
  ) async throws {
    try await ServerFixture.runWithSTOMP { server in
      let application = server.closed.record.id
      for (name, rights) in [("jobs", Rights.lease), ("c", .write)] {
        let key = Grant.Key(.channel(try ChannelName(name)), of: application, holder: .everyone)
        try await server.store.put([Grant(rights, on: key, minutes: 0, start: Date())])
      }
      try await server.server.gate.home?.refresh()
      try await server.engine.publish(Message(channel: Channel("closed/jobs"), payload: [0x61]))
      let subscribe = "SUBSCRIBE\nid:1\ndestination:/queue/jobs\nack:client\n\n"
      try await STOMPPeer.run(server) { peer in
        try await peer.send(server.closed.stompConnect)
        _ = try await peer.next()
        try await peer.send(subscribe)
        let id = try #require(try await peer.next()?["ack"])
        let before =
          "SEND\ndestination:/topic/c\n\nbefore\0SEND\ndestination:/topic/d\n\nx\0"
        let behind =
          "SEND\ndestination:/topic/c\n\nbehind\0ACK\nid:\(id)\n\n\0UNSUBSCRIBE\nid:1\nreceipt:r\n\n\0"
        if isSplit {
          try await peer.write(Array(before.utf8))
          try await eventually { try await server.bodies(of: "closed/c") == ["before"] }
          try? await peer.write(Array(behind.utf8))
        } else {
          try await peer.write(Array((before + behind).utf8))
        }
        let ending = try await peer.ending()
        #expect(ending?.hasPrefix("access refused: ") == true)
      }
      #expect(try await server.bodies(of: "closed/c") == ["before"])
      try await STOMPPeer.connect(server, server.closed) { peer in
        try await peer.send(subscribe)
        #expect(try await peer.next()?.body == [0x61])
      }
    }
  }

  @Test func `what was read before the connection is lost is done`() async throws {
    try await ServerFixture.runWithSTOMP { server in
      try await STOMPPeer.connect(server, server.open) { peer in
        for number in 0..<50 { try await peer.send("SEND\ndestination:/topic/c\n\n\(number)") }
        try await peer.send("BEGIN\ntransaction:t\n\n")
        try await peer.send("SEND\ndestination:/topic/c\ntransaction:t\n\nopen")
        try await peer.send("SUBSCRIBE\nid:1\ndestination:/topic/d\nreceipt:r\n\n")
        while let frame = try await peer.next(), frame.command != "RECEIPT" {}
      }
      #expect(try await server.bodies(of: "shop/c") == (0..<50).map { "\($0)" })
    }
  }

  @Test func `a lost lease undoes its whole transaction`() async throws {
    try await ServerFixture.runWithSTOMP { server in
      let channel = try Channel("shop/jobs")
      for body in ["a", "b"] {
        try await server.engine.publish(Message(channel: channel, payload: Array(body.utf8)))
      }
      try await STOMPPeer.connect(server, server.open) { peer in
        try await peer.send("SUBSCRIBE\nid:1\ndestination:/queue/jobs/w\nack:client-individual\n\n")
        try await peer.send("SUBSCRIBE\nid:2\ndestination:/queue/jobs\nack:client-individual\n\n")
        var ids: [String: String] = [:]
        while ids.count < 3 {
          let frame = try #require(try await peer.next())
          ids[(frame["subscription"] ?? "") + String(decoding: frame.body, as: UTF8.self)] =
            frame["ack"]
        }
        // As another process does.
        try await server.engine.removeConsumer(Consumer("w"), of: channel)
        try await peer.send("BEGIN\ntransaction:t\n\n")
        try await peer.send("SEND\ndestination:/topic/out\ntransaction:t\n\nx")
        try await peer.send("ACK\nid:\(ids["2a"] ?? "")\ntransaction:t\n\n")
        try await peer.send("ACK\nid:\(ids["1a"] ?? "")\ntransaction:t\n\n")
        try await peer.send("COMMIT\ntransaction:t\nreceipt:r\n\n")
        #expect(
          try await peer.ending() == "a lease has ended: the message is delivered again")
      }
      #expect(try await server.bodies(of: "shop/out") == [])
      // The acknowledgement of the other lease is undone too.
      try await STOMPPeer.connect(server, server.open) { peer in
        try await peer.send("SUBSCRIBE\nid:1\ndestination:/queue/jobs\nack:client\n\n")
        let body = try await peer.next()?.body
        #expect(body == Array("a".utf8))
      }
    }
  }

  @Test(arguments: [
    "SEND\ndestination:/topic/a.*\n\nx", "BEGIN\n\n",
    "ACK\nid:1-1\ntransaction:none\n\n", "DISCONNECT\n\n",
  ])
  func `leases go back, however the connection ends`(last: String) async throws {
    try await ServerFixture.runWithSTOMP { server in
      let channel = try Channel("shop/jobs")
      try await server.engine.publish(Message(channel: channel, payload: [0x61]))
      for _ in 0..<2 {
        try await STOMPPeer.connect(server, server.open) { peer in
          try await peer.send("SUBSCRIBE\nid:1\ndestination:/queue/jobs\nack:client\n\n")
          let body = try await peer.next()?.body
          #expect(body == [0x61])
          try await peer.send(last)
          _ = try await peer.ending()
        }
      }
      try await eventually { server.server.gate.home?.leases.count == 0 }
    }
  }

  @Test func `workers of one consumer get messages in turn, each up to its prefetch`() async throws
  {
    try await ServerFixture.runWithSTOMP { server in
      try await STOMPPeer.connect(server, server.open) { first in
        try await first.send(
          "SUBSCRIBE\nid:1\ndestination:/queue/c\nack:client\nprefetch-count:2\nreceipt:r\n\n")
        _ = try await first.next()
        for number in 0..<2 { try await first.send("SEND\ndestination:/queue/c\n\n\(number)") }
        #expect(try await first.next()?.body == Array("0".utf8))
        let last = try #require(try await first.next())
        try await STOMPPeer.connect(server, server.open) { second in
          try await second.send(
            "SUBSCRIBE\nid:1\ndestination:/queue/c\nack:client\nprefetch-count:1\nreceipt:r\n\n")
          _ = try await second.next()
          for number in 2..<4 { try await second.send("SEND\ndestination:/queue/c\n\n\(number)") }
          #expect(try await second.next()?.body == Array("2".utf8))
        }
        // What the second held is ready again, and the first has room after its acknowledgement.
        try await first.send("ACK\nid:\(last["ack"] ?? "")\n\n")
        let bodies = [try await first.next()?.body, try await first.next()?.body]
        #expect(Set(bodies) == [Array("2".utf8), Array("3".utf8)])
      }
    }
  }

  @Test func `messages of PubNub arrive with their type, and those of STOMP in PubNub's history`()
    async throws
  {
    try await ServerFixture.runWithSTOMP { server in
      let keys = server.open
      try await STOMPPeer.connect(server, keys) { peer in
        try await peer.send("SUBSCRIBE\nid:1\ndestination:/topic/c\nreceipt:r\n\n")
        _ = try await peer.next()
        let sent = try await server.get(
          "/publish/\(keys.publish)/\(keys.subscribe)/0/c/0/%7B%22a%22%3A1%7D?uuid=ann")
        #expect(sent.status == 200)
        let message = try #require(try await peer.next())
        #expect(message["content-type"] == "application/json")
        #expect(message["datavault-publisher"] == "ann")
        #expect(message.body == Array("{\"a\":1}".utf8))
        try await peer.send("SEND\ndestination:/topic/c\nreceipt:s\n\nplain")
        while let frame = try await peer.next(), frame.command != "RECEIPT" {}
        let history = try await server.get("/v2/history/sub-key/\(keys.subscribe)/channel/c")
        #expect(history.text.hasPrefix("[[{\"a\":1},\"plain\"],"))
      }
    }
  }

  @Test func `a lock of the vault ends connections, and new ones are refused`() async throws {
    try await ServerFixture.run({ configuration in
      configuration.stompListening = [.init(ListenAddress("127.0.0.1:0")!)]
      configuration.engine.unlockTimeout = .seconds(60)
    }) { server in
      try await STOMPPeer.connect(server, server.open) { peer in
        try await peer.send("SUBSCRIBE\nid:1\ndestination:/queue/c\nreceipt:r\n\n")
        _ = try await peer.next()
        await server.vault.lock()
        #expect(try await peer.ending() == "the server is locked")
      }
      try await STOMPPeer.run(server) { peer in
        try await peer.send(server.open.stompConnect)
        #expect(try await peer.ending() == "the server is locked")
      }
      try await server.vault.unlock(with: credentials("secret"))
    }
  }

  @Test(arguments: [
    ("CONNECT\nhost:other\n\n", STOMPEnding.unknownClient.message),
    ("CONNECT\naccept-version:3\nhost:shop\n\n", "this server speaks versions 1.0, 1.1 and 1.2"),
    ("CONNECT\nhost:shop\nlogin:ann\npasscode:x\n\n", nil),
    ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", nil),
    (String(repeating: "A", count: 10_000), "the command is too long"),
  ])
  func `what is no connection gets an error and the end`(text: String, message: String?)
    async throws
  {
    try await ServerFixture.runWithSTOMP { server in
      try await STOMPPeer.run(server) { peer in
        try await peer.send(text)
        let ending = try #require(try await peer.ending())
        if let message { #expect(ending == message) }
      }
    }
  }

  @Test(arguments: [
    "host:shop", "host:closed", "host:none", "login:none", "host:shop\nlogin:none",
    "host:none\nlogin:none\npasscode:a password", "host:shop\npasscode:a password",
    "host:shop\nlogin:ana\npasscode:a password", "host:closed\nlogin:ana\npasscode:a password",
    "host:closed\nlogin:KEY",
  ])
  func `a client without a key gets one answer, whatever name it has guessed`(
    headers: String
  ) async throws {
    try await ServerFixture.runWithSTOMP { server in
      try await server.put(user: "ana", "another password")
      let headers = headers.replacing("KEY", with: server.open.publish)
      try await STOMPPeer.run(server) { peer in
        try await peer.send("CONNECT\naccept-version:1.2\n\(headers)\n\n")
        let frame = try await peer.next()
        #expect(frame?.command == "ERROR")
        #expect(frame?["message"] == STOMPEnding.unknownClient.message)
        #expect(frame?["datavault-status"] == "403")
      }
    }
  }

  @Test func `the public key is enough in an open application`() async throws {
    try await ServerFixture.runWithSTOMP { server in
      try await STOMPPeer.run(server) { peer in
        try await peer.send(server.open.stompConnect)
        #expect(try await peer.next()?.command == "CONNECTED")
        try await peer.send("SEND\ndestination:/topic/c\nreceipt:r\n\n1")
        #expect(try await peer.next()?.command == "RECEIPT")
      }
    }
  }

  @Test(arguments: ["/topic/c", "/queue/c", "/queue/jobs/new"])
  func `the error for a refused subscription names its receipt`(destination: String) async throws {
    try await ServerFixture.runWithSTOMP { server in
      // Leases, but no right to add a consumer.
      let key = Grant.Key(
        .channel(try ChannelName("jobs")), of: server.closed.record.id, holder: .everyone)
      try await server.store.put([Grant(Rights.lease, on: key, minutes: 0, start: Date())])
      try await server.server.gate.home?.refresh()
      try await STOMPPeer.run(server) { peer in
        try await peer.send(server.closed.stompConnect)
        #expect(try await peer.next()?.command == "CONNECTED")
        try await peer.send("SUBSCRIBE\nid:1\ndestination:\(destination)\nreceipt:r\n\n")
        let frame = try await peer.next()
        #expect(frame?.command == "ERROR" && frame?["receipt-id"] == "r")
        #expect(frame?["datavault-status"] == "403")
      }
    }
  }

  @Test func `the end of a grant ends the subscription that it allowed`() async throws {
    try await ServerFixture.runWithSTOMP { server in
      let application = server.closed.record.id
      let key = Grant.Key(.channel(try ChannelName("c")), of: application, holder: .everyone)
      try await server.store.put([Grant([.read], on: key, minutes: 0, start: Date())])
      try await server.refresh()
      try await STOMPPeer.run(server) { peer in
        try await peer.send(server.closed.stompConnect)
        #expect(try await peer.next()?.command == "CONNECTED")
        try await peer.send("SUBSCRIBE\nid:1\ndestination:/topic/c\nreceipt:r\n\n")
        #expect(try await peer.next()?.command == "RECEIPT")
        try await server.store.put([Grant([], on: key, minutes: 0, start: Date())])
        let ending = try await peer.ending()
        #expect(ending?.hasPrefix("access refused: ") == true)
      }
    }
  }

  @Test func `STOMP decides about a message of a transaction at SEND, and again at COMMIT`()
    async throws
  {
    try await ServerFixture.runWithSTOMP { server in
      let key = Grant.Key(
        .channel(try ChannelName("c")), of: server.closed.record.id, holder: .everyone)
      for isRefusedAtSend in [true, false] {
        try await server.store.put([Grant(.write, on: key, minutes: 0, start: Date())])
        try await server.refresh()
        try await STOMPPeer.run(server) { peer in
          try await peer.send(server.closed.stompConnect)
          #expect(try await peer.next()?.command == "CONNECTED")
          try await peer.send("BEGIN\ntransaction:t\n\n")
          let channel = isRefusedAtSend ? "d" : "c"
          try await peer.send(
            "SEND\ndestination:/topic/\(channel)\ntransaction:t\nreceipt:sent\n\nx")
          var frame = try await peer.next()
          if !isRefusedAtSend {
            #expect(frame?["receipt-id"] == "sent")
            try await server.store.put([Grant([], on: key, minutes: 0, start: Date())])
            try await server.refresh()
            try await peer.send("COMMIT\ntransaction:t\nreceipt:done\n\n")
            frame = try await peer.next()
          }
          #expect(frame?.command == "ERROR")
          #expect(frame?["receipt-id"] == (isRefusedAtSend ? "sent" : "done"))
          #expect(frame?["datavault-status"] == "403")
        }
      }
      #expect(try await server.bodies(of: "closed/c") == [])
    }
  }

  @Test func `a worker that does not read leaves most messages of a queue to others`() async throws
  {
    try await ServerFixture.runWithSTOMP { server in
      let channel = try Channel("shop/jobs")
      let payload = [UInt8](repeating: 0x78, count: 60_000)
      let count = 300
      for _ in 0..<count {
        try await server.engine.publish(Message(channel: channel, payload: payload))
      }
      let worker = try await server.connectWithoutReading(to: server.stompOrigin)
      let keys = server.open
      for frame in [
        "CONNECT\naccept-version:1.2\nhost:shop\nlogin:\(keys.publish)\npasscode:\(keys.secretKey)\n\n",
        "SUBSCRIBE\nid:1\ndestination:/queue/jobs\nack:client\nprefetch-count:1000\n\n",
      ] {
        try await worker.writeAndFlush(ByteBuffer(string: "\(frame)\0"))
      }
      let leases = try #require(server.server.gate.home?.leases)
      try await eventually { leases.count >= STOMPLimits().unreadCount }
      try await STOMPPeer.connect(server, keys) { peer in
        try await peer.send("SUBSCRIBE\nid:1\ndestination:/queue/jobs\nack:client\n\n")
        #expect(try await peer.next()?.body == payload)
        // The system has room for a part of them.
        #expect(leases.count < count)
      }
      try await worker.close()
    }
  }

  @Test func `STOMP connects no client that has no right in the application`() async throws {
    try await ServerFixture.runWithSTOMP { server in
      try await STOMPPeer.run(server) { peer in
        try await peer.send("CONNECT\naccept-version:1.2\nhost:closed\n\n")
        let frame = try await peer.next()
        #expect(frame?.command == "ERROR")
        #expect(frame?["datavault-status"] == "403")
      }
    }
  }

  @Test func `a stop tells clients`() async throws {
    try await ServerFixture.runWithSTOMP { server in
      try await STOMPPeer.connect(server, server.open) { peer in
        server.server.connections.drain()
        let ending = try await peer.ending()
        #expect(ending == "the server stops: connect again")
      }
    }
  }
}

extension ServerFixture.Keys {
  /// The frame with which a client connects that has the public key alone.
  var stompConnect: String {
    "CONNECT\naccept-version:1.2\nhost:\(record.name)\nlogin:\(publish)\n\n"
  }
}

extension ServerFixture {
  /// The messages of the engine's channel, as text.
  func bodies(of channel: String) async throws -> [String] {
    var bodies: [String] = []
    var place = Timetoken(Date(timeIntervalSince1970: 0))
    while true {
      let tail = try await engine.logTail(after: place)
      bodies += tail.messages.filter { $0.channel.name == channel }
        .map { String(decoding: $0.payload, as: UTF8.self) }
      if tail.isAtEnd { return bodies }
      place = tail.end
    }
  }
}
