import NIOCore
import NIOEmbedded
import NIOWebSocket
import Testing

@testable import MessagingClient

extension HostileTests {
  /// WebSocket handshakes and frames of a hostile server.
  @Suite struct FrameTests {
    struct Frames: Sendable, CustomTestStringConvertible {
      let name: String
      let bytes: [UInt8]
      let code: UInt16
      /// Sent without end behind them.
      var repeated: [UInt8] = []
      var testDescription: String { name }
    }

    private static func frame(_ first: UInt8, _ text: String = "a") -> [UInt8] {
      HostileWebSocket.frame(first, Array(text.utf8))
    }

    private static let long = String(repeating: "a", count: 1000)

    static let frames: [Frames] = [
      Frames(
        name: "a frame of 2 GB", bytes: [0x82, 127, 0, 0, 0, 0, 0x80, 0, 0, 0], code: 1009,
        repeated: [0]),
      Frames(
        name: "a frame beyond all numbers",
        bytes: [0x82, 127] + [UInt8](repeating: 0xFF, count: 8),
        code: 1009),
      Frames(
        name: "a frame that is one byte too long",
        bytes: HostileWebSocket.frame(0x82, [UInt8](repeating: 0, count: 65537)), code: 1009),
      Frames(name: "a masked frame", bytes: [0x81, 0x81, 1, 2, 3, 4, 0x60], code: 1002),
      Frames(name: "a masked close frame", bytes: [0x88, 0x82, 0, 0, 0, 0, 3, 0xE8], code: 1002),
      Frames(name: "a masked ping", bytes: [0x89, 0x80, 0, 0, 0, 0], code: 1002),
      Frames(name: "the first reserved bit", bytes: frame(0xC1), code: 1002),
      Frames(name: "the second reserved bit", bytes: frame(0xA1), code: 1002),
      Frames(name: "the third reserved bit", bytes: frame(0x99), code: 1002),
      Frames(name: "a reserved opcode", bytes: frame(0x83), code: 1002),
      Frames(name: "a reserved control opcode", bytes: frame(0x8F), code: 1002),
      Frames(name: "a continuation of nothing", bytes: frame(0x80), code: 1002),
      Frames(name: "a text inside a text", bytes: frame(0x01) + frame(0x81), code: 1002),
      Frames(name: "a ping in fragments", bytes: frame(0x09), code: 1002),
      Frames(
        name: "a long ping", bytes: HostileWebSocket.frame(0x89, [UInt8](repeating: 0, count: 126)),
        code: 1002),
      Frames(name: "fragments without end", bytes: frame(0x01), code: 1009, repeated: frame(0x00)),
      Frames(
        name: "empty fragments without end", bytes: frame(0x01, ""), code: 1009,
        repeated: frame(0x00, "")),
      Frames(
        name: "long fragments without end", bytes: frame(0x02), code: 1009,
        repeated: frame(0x00, long)),
      Frames(
        name: "a text that is not UTF-8", bytes: HostileWebSocket.frame(0x81, [0xC0, 0x80]),
        code: 1007),
      Frames(
        name: "a text in fragments that is not UTF-8",
        bytes: HostileWebSocket.frame(0x01, [0xC3]) + frame(0x80), code: 1007),
      Frames(name: "a half frame", bytes: [0x81, 5, 0x61], code: 1006),
      Frames(name: "a half message", bytes: frame(0x01), code: 1006),
      Frames(name: "a close frame without a code", bytes: [0x88, 0], code: 1005),
      Frames(name: "a close frame", bytes: HostileWebSocket.close(4000, "\u{202E}x"), code: 4000),
    ]

    @Test(arguments: frames)
    func `frames that are hostile end the WebSocket with their code`(frames: Frames) async throws {
      try await HostileServer.run { peer in
        guard let head = peer.head(), let handshake = try? HostileWebSocket.handshake(head) else {
          return
        }
        // Behind the handshake in one piece.
        var isSending = peer.send(handshake + HostileWebSocket.text("before") + frames.bytes)
        while isSending, !frames.repeated.isEmpty { isSending = peer.send(frames.repeated) }
        // It ends the connection by itself only for the frames that are not complete.
        if frames.code != 1006 { peer.wait() }
      } _: { server in
        let events = try await HostileWebSocket.events(server)
        #expect(events.first == .message(Array("before".utf8)))
        guard events.count == 2, case .closed(let code, _)? = events.last else {
          Issue.record("\(frames.name): \(events)")
          return
        }
        #expect(code == frames.code)
      }
    }

    struct Change: Sendable, CustomTestStringConvertible {
      let name: String
      let value: String?
      var code = MessagingClientError.Code.invalidAnswer
      var testDescription: String { "\(name): \(value ?? "none")" }
    }

    static let changes = [
      Change(name: "Sec-WebSocket-Accept", value: nil),
      Change(name: "Sec-WebSocket-Accept", value: ""),
      Change(name: "Sec-WebSocket-Accept", value: "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
      Change(name: "Upgrade", value: nil), Change(name: "Upgrade", value: "h2c"),
      Change(name: "Connection", value: nil), Change(name: "Connection", value: "close"),
      Change(name: "Sec-WebSocket-Extensions", value: "permessage-deflate"),
      Change(name: "Sec-WebSocket-Protocol", value: "v3"),
      Change(name: "Sec-WebSocket-Protocol", value: "v1, v3"),
    ]

    @Test(arguments: changes)
    func `a handshake with a wrong or unasked header opens nothing`(change: Change) async throws {
      try await HostileServer.run { peer in
        guard let head = peer.head(),
          let handshake = try? HostileWebSocket.handshake(head, [change.name: change.value])
        else { return }
        peer.send(handshake + HostileWebSocket.text("x"))
        peer.wait()
      } _: { server in
        let error = await failure { try await HostileWebSocket.events(server) }
        #expect(error?.code == .invalidAnswer)
      }
    }

    @Test func `an accept that comes twice, and another status, open nothing`() async throws {
      try await HostileServer.run { peer in
        guard let head = peer.head(), let accept = try? HostileWebSocket.accept(head) else {
          return
        }
        if peer.number == 0 {
          let twice = "Sec-WebSocket-Accept: \(accept)\r\n"
          peer.send(
            "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\(twice)\(twice)\r\n")
        } else {
          peer.send(answer("200 OK", ["Sec-WebSocket-Accept: \(accept)"]))
        }
        peer.wait()
      } _: { server in
        let twice = await failure { try await HostileWebSocket.events(server) }
        #expect(twice?.code == .invalidAnswer)
        let other = await failure { try await HostileWebSocket.events(server) }
        #expect(other?.code == .refused && other?.status == 200)
      }
    }

    @Test func `a connection that ends at any byte of the handshake opens nothing`() async throws {
      try await HostileServer.run { peer in
        guard let head = peer.head(), let handshake = try? HostileWebSocket.handshake(head) else {
          return
        }
        peer.send(Array(handshake.prefix(peer.number)))
      } _: { server in
        // The accept has the same length for each key.
        let count = try HostileWebSocket.handshake("").count
        for number in 0..<count {
          let error = await failure { try await HostileWebSocket.events(server) }
          #expect(error?.code == .outcomeUnknown, "after \(number) bytes")
        }
        // With the last byte it is open, and then lost.
        let events = try? await HostileWebSocket.events(server)
        #expect(events == nil || events == [.closed(code: 1006, reason: "")])
      }
    }

    @Test
    func `a handshake of single bytes is bounded by its time, and frames of single bytes are read`()
      async throws
    {
      try await HostileServer.run { peer in
        guard let head = peer.head(), let handshake = try? HostileWebSocket.handshake(head) else {
          return
        }
        if peer.number == 0 {
          peer.drip(handshake, every: 50)
        } else {
          peer.send(handshake)
          peer.drip(HostileWebSocket.text("slow") + HostileWebSocket.close(1000), every: 5)
        }
        peer.wait()
      } _: { server in
        let error = await failure {
          try await HostileWebSocket.events(server, timeout: .milliseconds(200))
        }
        #expect(error?.code == .outcomeUnknown)
        let events = try await HostileWebSocket.events(server)
        #expect(events == [.message(Array("slow".utf8)), .closed(code: 1000, reason: "")])
      }
    }

    // MARK: - Without a network

    private static func open(_ inbox: Inbox<WebSocketEvent>) throws -> EmbeddedChannel {
      let channel = EmbeddedChannel()
      try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
      _ = try WebSocketFrames.configure(channel, inbox, messageByteCount: 1 << 16)
      return channel
    }

    private static func sentByteCount(_ channel: EmbeddedChannel) throws -> Int {
      var count = 0
      while let bytes = try channel.readOutbound(as: ByteBuffer.self) {
        count += bytes.readableBytes
      }
      return count
    }

    @Test func `a server that closes and keeps the connection open loses it after a time`()
      async throws
    {
      let inbox = Inbox<WebSocketEvent>()
      let channel = try Self.open(inbox)
      try channel.writeInbound(ByteBuffer(bytes: HostileWebSocket.close(1001)))
      try channel.writeInbound(ByteBuffer(bytes: HostileWebSocket.text("behind")))
      #expect(channel.isActive)
      channel.embeddedEventLoop.advanceTime(by: .seconds(6))
      #expect(!channel.isActive)
      #expect(await inbox.next() == .closed(code: 1001, reason: ""))
      _ = try channel.finish(acceptAlreadyClosed: true)
    }

    @Test func `pings of a server that reads no pong fill no memory`() throws {
      let channel = try Self.open(Inbox())
      channel.isWritable = false
      for _ in 0..<1000 {
        try channel.writeInbound(ByteBuffer(bytes: HostileWebSocket.frame(0x89, [1, 2, 3])))
      }
      #expect(try Self.sentByteCount(channel) == 0)
      channel.isWritable = true
      try channel.writeInbound(ByteBuffer(bytes: HostileWebSocket.frame(0x89, [1, 2, 3])))
      #expect(try Self.sentByteCount(channel) == 2 + 4 + 3)
      _ = try channel.finish()
    }

    @Test(arguments: [0, 1000])
    func `a flood of messages that no one takes stops the reading, also of empty ones`(
      byteCount: Int
    ) throws {
      let channel = try Self.open(Inbox())
      let frame = HostileWebSocket.frame(0x82, [UInt8](repeating: 0, count: byteCount))
      func isHeld() -> Bool {
        channel.options.contains { $0.option is ChannelOptions.Types.AutoReadOption }
      }
      var count = 0
      while count < 20_000, !isHeld() {
        try channel.writeInbound(ByteBuffer(bytes: frame))
        count += 1
      }
      #expect(count < 20_000)
      _ = try channel.finish()
    }

    @Test func `a connection that ends before its handler is told ends the messages`() async throws
    {
      let inbox = Inbox<WebSocketEvent>()
      let frames = WebSocketFrames(inbox, messageByteCount: 1000)
      let channel = EmbeddedChannel(handler: frames)
      frames.handlerRemoved(context: try channel.pipeline.syncOperations.context(handler: frames))
      #expect(await inbox.next() == .closed(code: 1006, reason: ""))
      _ = try channel.finish(acceptAlreadyClosed: true)
    }
  }
}
