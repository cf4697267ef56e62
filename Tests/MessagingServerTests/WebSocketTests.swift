import NIOCore
import NIOEmbedded
import NIOWebSocket
import Testing

@testable import MessagingServer

/// A session that answers each message with itself, and keeps what it is told.
private final class EchoSession: ClientSession {
  private(set) var transport: (any ClientTransport)?
  private(set) var messages: [String] = []
  private(set) var notes: [String] = []

  func begin(_ transport: any ClientTransport) { self.transport = transport }

  func receive(_ bytes: ByteBuffer) {
    messages.append(String(buffer: bytes))
    transport?.send(Array(bytes.readableBytesView))
  }

  func clientIsSlow() { notes.append("slow") }
  func clientHoldsTooMuch() { notes.append("too much") }
  func clientIsSilent() { notes.append("silent") }
  func serverStops() { notes.append("stop") }
  func end() { notes.append("end") }
}

@Suite struct WebSocketTests {
  private let session = EchoSession()
  private let channel = EmbeddedChannel()
  private let loop: EmbeddedEventLoop
  private let ledger = MemoryLedger(limitByteCount: 64 << 20)
  /// An example of RFC 6455, 1.3.
  private static let request = """
    GET /chat HTTP/1.1\r
    Host: server.example.com\r
    Upgrade: websocket\r
    Connection: keep-alive, Upgrade\r
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
    Sec-WebSocket-Protocol: chat, superchat\r
    Sec-WebSocket-Version: 13\r\n\r\n
    """

  init() throws {
    loop = channel.embeddedEventLoop
    let session = NIOLoopBound(session, eventLoop: channel.eventLoop)
    var limits = WebSocketLimits()
    limits.messageByteCount = 9000
    limits.fragmentCount = 4
    let chosen = limits
    try HTTPConnection.configure(
      channel,
      HTTPConnection(
        limits: HTTPLimits(), isProtected: true, operations: ServerOperations(),
        memory: ledger.open(channel),
        answer: { exchange in
          guard let handshake = WebSocketHandshake(exchange.request) else {
            return exchange.answer(HTTPResponse(400, "no handshake"))
          }
          exchange.open(
            WebSocketOpening(
              handshake: handshake, subprotocol: handshake.subprotocols.last, limits: chosen,
              makeSession: { session.value }))
        }))
    try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
  }

  private func output() throws -> [UInt8] {
    var bytes: [UInt8] = []
    while let buffer = try channel.readOutbound(as: ByteBuffer.self) {
      bytes += buffer.readableBytesView
    }
    return bytes
  }

  /// Sends a request; the handshake ends in a later turn of the loop.
  private func send(_ text: String, _ more: [UInt8] = []) throws {
    try channel.writeInbound(ByteBuffer(bytes: Array(text.utf8) + more))
    loop.run()
  }

  /// Opens the WebSocket.
  private func open() throws {
    try send(Self.request)
    _ = try output()
  }

  /// Sends a frame as a client does, masked.
  private func frame(_ first: UInt8, _ payload: [UInt8], mask: [UInt8]? = [1, 2, 3, 4]) throws {
    let length: [UInt8] =
      payload.count < 126
      ? [UInt8(payload.count)] : [126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
    var bytes = [first] + length
    if let mask {
      bytes[1] |= 0x80
      bytes += mask + payload.enumerated().map { $1 ^ mask[$0 % 4] }
    } else {
      bytes += payload
    }
    try channel.writeInbound(ByteBuffer(bytes: bytes))
  }

  /// The close code of the last frame that was sent; nil for another frame.
  private func closeCode() throws -> Int? {
    let bytes = try output()
    guard let start = bytes.lastIndex(of: 0x88), bytes.count >= start + 4 else { return nil }
    return Int(bytes[start + 2]) << 8 | Int(bytes[start + 3])
  }

  @Test func `a handshake is answered as RFC 6455 shows`() throws {
    try send(Self.request)
    let answer = String(decoding: try output(), as: UTF8.self)
    #expect(answer.hasPrefix("HTTP/1.1 101 Switching Protocols\r\n"))
    #expect(answer.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"))
    #expect(answer.contains("Sec-WebSocket-Protocol: superchat\r\n"))
    #expect(session.transport != nil)
  }

  @Test(arguments: [
    ("Sec-WebSocket-Version: 13", "Sec-WebSocket-Version: 8"),
    ("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZQ=="),
    ("Connection: keep-alive, Upgrade", "Connection: keep-alive"),
  ])
  func `a handshake that is not valid is refused, and the connection closed`(
    part: String, other: String
  ) throws {
    try send(Self.request.replacing(part, with: other))
    #expect(String(decoding: try output(), as: UTF8.self).hasPrefix("HTTP/1.1 400"))
    #expect(!channel.isActive)
  }

  @Test func `messages come and go, also those that come with the handshake`() throws {
    try send(Self.request, [0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69])
    #expect(session.messages == ["hi"])
    #expect(try output().suffix(4) == [0x81, 2, 0x68, 0x69])
  }

  @Test func `fragments make one message, with control frames between them`() throws {
    try open()
    try frame(0x01, Array("a".utf8))
    try frame(0x89, Array("ping".utf8))
    #expect(try output() == [0x8A, 4] + Array("ping".utf8))
    try frame(0x00, Array("b".utf8))
    try frame(0x80, Array("c".utf8))
    #expect(session.messages == ["abc"])
  }

  @Test func `a close frame is answered with its code, and then the connection closes`() throws {
    try open()
    try frame(0x88, [0x03, 0xE8])
    #expect(try closeCode() == 1000)
    loop.advanceTime(by: .seconds(5))
    #expect(!channel.isActive)
    #expect(session.notes == ["end"])
  }

  @Test(
    arguments: [
      ([], 1000), ([0x03, 0xE8], 1000), ([0x03, 0xE9, 0x78], 1001), ([0x0B, 0xB8], 3000),
      ([0x03], 1002), ([0x03, 0xED], 1002), ([0x03, 0xEE], 1002), ([0x03, 0xF7], 1002),
      ([0x03, 0xE7], 1002), ([0x07, 0xD0], 1002), ([0x13, 0x88], 1002), ([0x03, 0xE8, 0xFF], 1007),
    ] as [([UInt8], Int)])
  func `a close frame gets no code that RFC 6455 allows in none`(payload: [UInt8], code: Int)
    throws
  {
    try open()
    try frame(0x88, payload)
    #expect(try closeCode() == code)
  }

  @Test func `a client that sends on behind a broken frame has the time to read the close frame`()
    throws
  {
    try open()
    _ = try? channel.writeInbound(ByteBuffer(bytes: [0x81, 0xFE, 0x23, 0x29]))
    #expect(try closeCode() == 1009)
    for _ in 0..<3 { _ = try? channel.writeInbound(ByteBuffer(repeating: 0x78, count: 1000)) }
    #expect(channel.isActive)
    loop.advanceTime(by: .seconds(5))
    #expect(!channel.isActive)
    #expect(session.messages.isEmpty)
  }

  @Test func `what a session sends before it closes comes before the close frame`() throws {
    try open()
    session.transport?.send([0x78])
    session.transport?.close(4200, "stop")
    #expect(try output() == [0x81, 1, 0x78, 0x88, 6, 0x10, 0x68] + Array("stop".utf8))
    try frame(0x81, Array("late".utf8))
    #expect(session.messages.isEmpty)
    try frame(0x88, [0x10, 0x68])
    #expect(!channel.isActive)
  }

  @Test(arguments: [
    (1002, [0x81, 1, 0x78] as [UInt8]),  // not masked
    (1002, [0xC1, 0x80, 0, 0, 0, 0]),  // a reserved bit
    (1002, [0x83, 0x80, 0, 0, 0, 0]),  // an unknown opcode
    (1002, [0x80, 0x80, 0, 0, 0, 0]),  // a continuation of nothing
    (1002, [0x01, 0x80, 0, 0, 0, 0, 0x81, 0x80, 0, 0, 0, 0]),  // a message inside another
    (1002, [0x09, 0x80, 0, 0, 0, 0]),  // a fragmented ping
    (1002, [0x89, 0xFE, 0, 126]),  // a long ping
    (1007, [0x81, 0x81, 0, 0, 0, 0, 0xFF]),  // text that is not UTF-8
    (1009, [0x81, 0xFE, 0x23, 0x29]),  // more bytes than a message can have
    (1009, [0x81, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),  // 2^63 - 1 bytes
  ])
  func `a broken frame closes with the code that RFC 6455 has`(
    code: Int, bytes: [UInt8]
  ) throws {
    try open()
    // It throws what the decoder reports.
    _ = try? channel.writeInbound(ByteBuffer(bytes: bytes))
    #expect(try closeCode() == code)
    #expect(session.messages.isEmpty)
  }

  @Test func `fragments are bounded in bytes and in number`() throws {
    for (count, size) in [(5, 1), (2, 5000)] {
      let test = try WebSocketTests()
      try test.open()
      try test.frame(0x01, [UInt8](repeating: 0x78, count: size))
      for _ in 1..<count { try test.frame(0x00, [UInt8](repeating: 0x78, count: size)) }
      #expect(try test.closeCode() == 1009)
    }
  }

  @Test func `a silent client is pinged, and reported when it does not answer`() throws {
    try open()
    loop.advanceTime(by: .seconds(60))
    #expect(try output().isEmpty)
    loop.advanceTime(by: .seconds(60))
    #expect(try output() == [0x89, 0])
    try frame(0x8A, [])
    loop.advanceTime(by: .seconds(120))
    #expect(try output() == [0x89, 0])
    #expect(session.notes.isEmpty)
    loop.advanceTime(by: .seconds(60))
    #expect(session.notes == ["silent"])
  }

  @Test func `WebSocketConnection answers the newest ping alone of a client that does not read`()
    throws
  {
    try open()
    let reader = try SlowReader.add(to: channel)
    for number in 0..<1000 { try frame(0x89, [UInt8(number >> 8), UInt8(number & 0xFF)]) }
    #expect(reader.heldCount == 1)
    while reader.heldCount > 0 { reader.read() }
    #expect(try output() == [0x8A, 2, 0, 0, 0x8A, 2, 0x03, 0xE7])
  }

  @Test func `WebSocketConnection reports a client that reads nothing for 30 seconds`() throws {
    try open()
    let reader = try SlowReader.add(to: channel)
    session.transport?.send([0x78])
    loop.advanceTime(by: .seconds(29))
    reader.read()
    session.transport?.send([0x79])
    loop.advanceTime(by: .seconds(29))
    #expect(session.notes.isEmpty)
    loop.advanceTime(by: .seconds(1))
    #expect(session.notes == ["slow"])
  }

  @Test(arguments: [125, 126, 65_535, 65_536])
  func `WebSocketConnection writes the length of a frame in its shortest form`(byteCount: Int)
    throws
  {
    try open()
    session.transport?.send([UInt8](repeating: 0x78, count: byteCount))
    let length: [UInt8] =
      switch byteCount {
      case ..<126: [UInt8(byteCount)]
      case ..<65_536: [126, UInt8(byteCount >> 8), UInt8(byteCount & 0xFF)]
      default: [127, 0, 0, 0, 0, 0, 1, 0, 0]
      }
    #expect(try output().prefix(1 + length.count) == [0x81] + length)
  }

  @Test func `WebSocketConnection reports a client for which too much waits, in many short frames`()
    throws
  {
    try open()
    let reader = try SlowReader.add(to: channel)
    let message = [UInt8](repeating: 0x78, count: 1020)
    for _ in 0..<1024 { session.transport?.send(message) }
    #expect(session.notes.isEmpty)
    #expect(reader.heldCount == 1)
    session.transport?.send(message)
    #expect(session.notes == ["slow"])
  }

  @Test func `WebSocketConnection holds fragments and unread frames, and ends for them`() throws {
    try open()
    try frame(0x01, [UInt8](repeating: 0x78, count: 8000))
    #expect(ledger.byteCount >= 4096)
    try frame(0x80, [])
    #expect(ledger.byteCount == 0)
    let start: [UInt8] = [0x81, 0xFE, 0x20, 0x00, 0, 0, 0, 0]
    try channel.writeInbound(ByteBuffer(bytes: start + [UInt8](repeating: 0x78, count: 5000)))
    #expect(ledger.byteCount == 4096)
    try channel.writeInbound(ByteBuffer(repeating: 0x78, count: 0x2000 - 5000))
    #expect(ledger.byteCount == 0)
    channel.pipeline.fireUserInboundEventTriggered(MemoryLedger.End())
    #expect(session.notes == ["too much"])
    let reader = try SlowReader.add(to: channel)
    session.transport?.send([UInt8](repeating: 0x78, count: 8192))
    #expect(ledger.byteCount == 8192)
    channel.pipeline.fireUserInboundEventTriggered(MemoryLedger.End())
    #expect(!channel.isActive)
    loop.run()
    #expect(ledger.byteCount == 0)
    #expect(reader.heldCount == 1)
  }

  @Test func `a stop of the server reaches the session`() throws {
    try open()
    channel.pipeline.fireUserInboundEventTriggered(ConnectionSet.Drain())
    #expect(session.notes == ["stop"])
  }
}
