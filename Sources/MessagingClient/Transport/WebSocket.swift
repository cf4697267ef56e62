internal import Foundation
internal import NIOCore
internal import NIOHTTP1
internal import NIOWebSocket
internal import VaultCrypto

/// A client's request to open a WebSocket, and the check of its answer (RFC 6455, 4.1).
struct WebSocketOpeningHandshake {
  private let key: String
  private let subprotocols: [String]

  init(_ subprotocols: [String]) {
    var generator = SystemRandomNumberGenerator()
    key = Data((0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) })
      .base64EncodedString()
    self.subprotocols = subprotocols
  }

  var headers: [(name: String, value: SecretText)] {
    [
      ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13"),
      ("Sec-WebSocket-Key", SecretText(key)),
    ]
      + (subprotocols.isEmpty
        ? []
        : [("Sec-WebSocket-Protocol", SecretText(subprotocols.joined(separator: ", ")))])
  }

  /// - Throws: `invalidAnswer` if the server has not read the request as a handshake, or chose what was not offered.
  func check(_ headers: HTTPHeaders) throws {
    let text = Array("\(key)258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8)
    let accept = unsafe Data(try LegacyDigest.sha1(text.span.bytes)).base64EncodedString()
    guard headers["sec-websocket-accept"] == [accept],
      headers[canonicalForm: "upgrade"].map({ $0.lowercased() }) == ["websocket"],
      headers[canonicalForm: "connection"].contains(where: { $0.lowercased() == "upgrade" }),
      headers["sec-websocket-extensions"].isEmpty,
      headers[canonicalForm: "sec-websocket-protocol"].allSatisfy({
        subprotocols.contains(String($0))
      })
    else {
      throw MessagingClientError(.invalidAnswer, "the server's WebSocket handshake is not valid")
    }
  }
}

/// What makes a WebSocket of a connection for requests.
struct WebSocketOpening: Sendable {
  let handshake: WebSocketOpeningHandshake
  let messageByteCount: Int

  /// Checks the server's answer, and adds the WebSocket's handlers.
  func open(
    _ headers: HTTPHeaders, _ channel: any Channel, behind handler: ProtocolSwitch
  ) throws -> WebSocket {
    try handshake.check(headers)
    let inbox = Inbox<WebSocketEvent>()
    let frames = try WebSocketFrames.configure(
      channel, inbox, messageByteCount: messageByteCount, position: .after(handler))
    return WebSocket(channel, frames, inbox)
  }
}

/// An open WebSocket, as tasks use it.
struct WebSocket: Sendable {
  private let channel: any Channel
  private let frames: NIOLoopBound<WebSocketFrames>
  private let inbox: Inbox<WebSocketEvent>

  init(
    _ channel: any Channel, _ frames: NIOLoopBound<WebSocketFrames>, _ inbox: Inbox<WebSocketEvent>
  ) {
    self.channel = channel
    self.frames = frames
    self.inbox = inbox
    inbox.whenTaken { _ = channel.setOption(.autoRead, value: true) }
  }

  /// The next message, or the end; nil if the task is cancelled.
  ///
  /// It is for one task at a time.
  func next() async -> WebSocketEvent? { await inbox.next() }

  /// Sends a text message; it is written to the system on return.
  ///
  /// - Throws: an error if the connection is lost.
  func send(_ text: SecretText) async throws {
    try await enqueue(.text, byteCount: text.byteCount) { text.write(to: &$0) }.get()
  }

  /// Sends a message behind all that were sent before; its bytes are wiped when they are written.
  @discardableResult
  func enqueue(
    _ opcode: WebSocketOpcode, byteCount: Int,
    _ write: @escaping @Sendable (inout ByteBuffer) -> Void
  ) -> EventLoopFuture<Void> {
    let promise = channel.eventLoop.makePromise(of: Void.self)
    channel.eventLoop.execute { [frames, channel] in
      var bytes = channel.allocator.buffer(capacity: byteCount)
      write(&bytes)
      promise.futureResult.whenComplete { [bytes] _ in bytes.wipe() }
      frames.value.send(opcode, bytes, promise)
    }
    return promise.futureResult
  }

  /// Begins the closing handshake; the server's answer, or a lost connection, ends the messages.
  func close(_ code: UInt16 = 1000) {
    channel.eventLoop.execute { [frames] in frames.value.close(code) }
  }

  /// Closes without a handshake.
  func drop() { channel.close(promise: nil) }
}
