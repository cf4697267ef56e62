import Foundation
import NIOCore
import NIOPosix
import StrictJSON
import Synchronization
import TestSupport
import Testing
import VaultCrypto

/// A WebSocket client that does what it is told, also what no stock client does.
final class PusherSocket: Sendable {
  /// What the server sends.
  enum Received: Sendable, Equatable {
    case text(String)
    case close(Int)
    /// The connection is gone.
    case gone
  }

  /// What has come.
  private final class Inbox: Sendable {
    let list = Mutex<[Received]>([])
    let head = Mutex("")

    func take(_ received: Received) { list.withLock { $0.append(received) } }
  }

  private let channel: any Channel
  private let inbox: Inbox

  /// Connects, and sends a handshake.
  static func open(
    _ server: ServerFixture, _ target: String, headers: String = ""
  ) async throws -> PusherSocket {
    try await open(server.origin, target, headers: headers)
  }

  /// Connects to `HOST:PORT`, and sends a handshake.
  static func open(
    _ origin: String, _ target: String, headers: String = ""
  ) async throws -> PusherSocket {
    let colon = try #require(origin.lastIndex(of: ":"))
    let port = try #require(Int(origin[colon...].dropFirst()))
    let inbox = Inbox()
    let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(Reader(inbox))
        }
      }
      .connect(host: "127.0.0.1", port: port).get()
    let socket = PusherSocket(channel, inbox)
    let request = """
      GET \(target) HTTP/1.1\r
      Host: \(origin)\r
      Upgrade: websocket\r
      Connection: Upgrade\r
      Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
      Sec-WebSocket-Version: 13\r
      \(headers)\r\n
      """
    try await channel.writeAndFlush(ByteBuffer(string: request))
    return socket
  }

  /// Connects to an application, and waits until the connection is established.
  static func connect(
    _ server: ServerFixture, _ keys: ServerFixture.Keys
  ) async throws -> PusherSocket {
    let socket = try await open(server, "/app/\(keys.subscribe)?protocol=7")
    _ = try await socket.next("pusher:connection_established")
    return socket
  }

  private init(_ channel: any Channel, _ inbox: Inbox) {
    self.channel = channel
    self.inbox = inbox
  }

  var received: [Received] { inbox.list.withLock { $0 } }
  var texts: [String] { received.compactMap { if case .text(let text) = $0 { text } else { nil } } }
  /// The answer to the handshake.
  var answer: String { inbox.head.withLock { $0 } }

  func send(_ text: String) async throws { try await send(0x81, Array(text.utf8)) }

  /// Sends a frame, masked.
  func send(_ first: UInt8, _ payload: [UInt8]) async throws {
    var buffer = ByteBuffer(bytes: [first])
    if payload.count < 126 {
      buffer.writeInteger(0x80 | UInt8(payload.count))
    } else if payload.count < 65_536 {
      buffer.writeInteger(0xFE as UInt8)
      buffer.writeInteger(UInt16(payload.count))
    } else {
      buffer.writeInteger(0xFF as UInt8)
      buffer.writeInteger(UInt64(payload.count))
    }
    buffer.writeBytes([0, 0, 0, 0])
    buffer.writeBytes(payload)
    try await channel.writeAndFlush(buffer)
  }

  func subscribe(_ name: String, auth: String = "", data: String? = nil) async throws {
    var members = [JSONMember("channel", .string(name)), JSONMember("auth", .string(auth))]
    if let data { members.append(JSONMember("channel_data", .string(data))) }
    let frame: JSONValue = ["event": "pusher:subscribe", "data": .object(members)]
    try await send(frame.text)
  }

  /// Stops reading, or reads on.
  func setReading(_ reads: Bool) async throws {
    try await channel.setOption(.autoRead, value: reads).get()
    if reads { channel.read() }
  }

  func close() async throws { try await channel.close() }

  /// Waits until something of what came passes.
  func wait<Value>(
    _ what: String, _ find: ([Received]) -> Value?
  ) async throws -> Value {
    try await eventually("\(what), not \(received.suffix(5))") { find(received) }
  }

  /// Waits for an event, the first with this name.
  func next(_ name: String, on channel: String? = nil) async throws -> String {
    let beginning =
      channel.map { #"{"event":"\#(name)","channel":"\#($0)""# } ?? #"{"event":"\#(name)""#
    return try await wait(name) { list in
      for case .text(let text) in list where text.hasPrefix(beginning) { return text }
      return nil
    }
  }

  func closeCode() async throws -> Int {
    try await wait("a close frame") { list in
      for case .close(let code) in list { return code }
      return nil
    }
  }

  /// The `socket_id` of the established connection.
  var socketID: String {
    get throws {
      let text = try #require(texts.first)
      return String(try #require(text.firstMatch(of: /\\"socket_id\\":\\"([0-9.]+)\\"/)).1)
    }
  }

  /// Reads the answer to the handshake, then frames without a mask.
  private final class Reader: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let inbox: Inbox
    private var buffer = ByteBuffer()
    private var isOpen = false

    init(_ inbox: Inbox) { self.inbox = inbox }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      var bytes = unwrapInboundIn(data)
      buffer.writeBuffer(&bytes)
      if !isOpen {
        guard let end = buffer.readableBytesView.firstRange(of: Array("\r\n\r\n".utf8)) else {
          return
        }
        let head = buffer.readString(length: end.upperBound - buffer.readerIndex) ?? ""
        inbox.head.withLock { $0 = head }
        isOpen = true
      }
      while readFrame(context) {}
    }

    private func readFrame(_ context: ChannelHandlerContext) -> Bool {
      let start = buffer.readerIndex
      guard let first: UInt8 = buffer.readInteger(), let second: UInt8 = buffer.readInteger() else {
        buffer.moveReaderIndex(to: start)
        return false
      }
      let length: Int? =
        switch second {
        case 126: buffer.readInteger(as: UInt16.self).map { Int($0) }
        case 127: buffer.readInteger(as: UInt64.self).map { Int($0) }
        default: Int(second)
        }
      guard let length, let payload = buffer.readBytes(length: length) else {
        buffer.moveReaderIndex(to: start)
        return false
      }
      switch first {
      case 0x81: inbox.take(.text(String(decoding: payload, as: UTF8.self)))
      case 0x88:
        inbox.take(.close(payload.prefix(2).reduce(0) { $0 << 8 | Int($1) }))
        let answer = ByteBuffer(bytes: [0x88, 0x82, 0, 0, 0, 0] + payload.prefix(2))
        context.writeAndFlush(wrapOutboundOut(answer), promise: nil)
      default: break
      }
      return true
    }

    func channelInactive(context: ChannelHandlerContext) { inbox.take(.gone) }
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      context.close(promise: nil)
    }
  }
}

extension ServerFixture.Keys {
  /// What the application's endpoint answers with its signature of a text.
  func pusherAuth(_ text: String) throws -> String {
    let bytes = Array(text.utf8)
    let code = try HMAC.sha256(key: secret(secretKey), message: bytes.span.bytes)
    return "\(subscribe):\(code.map { String(format: "%02x", $0) }.joined())"
  }
}
