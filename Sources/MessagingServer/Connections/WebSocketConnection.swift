internal import NIOCore
internal import NIOWebSocket

/// What a WebSocket client can send, and how much can wait for it.
struct WebSocketLimits: Sendable {
  /// The largest message, in bytes, however it is fragmented.
  ///
  /// Default: 128 KiB.
  var messageByteCount = 128 << 10
  /// The most fragments of a message.
  ///
  /// Default: 128.
  var fragmentCount = 128
  /// The most bytes that wait to be sent before the client counts as slow.
  ///
  /// Default: 1 MiB.
  var waitingByteCount = 1 << 20
  /// A client that has sent nothing for this time is pinged, and after twice this time it is silent.
  ///
  /// Default: 60 seconds.
  var pingTime: Duration = .seconds(60)
  /// How long the client can take to answer a close frame.
  ///
  /// Default: 5 seconds.
  var closeTime: Duration = .seconds(5)
}

/// How a request becomes a WebSocket.
struct WebSocketOpening: Sendable {
  let handshake: WebSocketHandshake
  /// The subprotocol that was chosen of those that the client offered; nil for none.
  let subprotocol: String?
  let limits: WebSocketLimits
  /// Makes the session, on the event loop.
  let makeSession: @Sendable () -> any ClientSession
}

/// One WebSocket of a client (RFC 6455): frames to messages and back, pings, and the closing handshake.
///
/// Extensions are not offered, so no frame is compressed.
final class WebSocketConnection: ChannelDuplexHandler, ClientTransport {
  typealias InboundIn = WebSocketFrame
  typealias OutboundIn = Never
  typealias OutboundOut = WebSocketFrame

  private enum State {
    case open
    /// A close frame was sent; what the client still sends is dropped.
    case closing
    case closed
  }

  let eventLoop: any EventLoop
  let isProtected: Bool
  let source: LoginSource
  private let limits: WebSocketLimits
  private let session: any ClientSession
  private var context: ChannelHandlerContext?
  private var state = State.open
  private var isReading = true
  private var wantsRead = false
  /// The message whose last fragment has not come.
  private var message: (opcode: WebSocketOpcode, bytes: ByteBuffer, fragmentCount: Int)?
  private var hasHeard = true
  private var isPinged = false

  init(
    _ session: any ClientSession, limits: WebSocketLimits, isProtected: Bool,
    from source: LoginSource, on eventLoop: any EventLoop
  ) {
    self.session = session
    self.limits = limits
    self.isProtected = isProtected
    self.source = source
    self.eventLoop = eventLoop
  }

  /// Adds the frame coder and this handler behind the handler of a finished handshake.
  static func configure(
    _ pipeline: ChannelPipeline.SynchronousOperations, _ connection: WebSocketConnection
  ) throws {
    try pipeline.addHandlers(
      ByteToMessageHandler(
        WebSocketFrameDecoder(maxFrameSize: connection.limits.messageByteCount)),
      WebSocketFrameEncoder(), connection)
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    // The channel is not writable from the high mark on, until the low one is reached.
    _ = context.channel.setOption(
      .writeBufferWaterMark,
      value: .init(low: limits.waitingByteCount / 2, high: limits.waitingByteCount))
    startTimer()
    session.begin(self)
  }

  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func channelInactive(context: ChannelHandlerContext) {
    state = .closed
    message = nil
    session.end()
    context.fireChannelInactive()
  }

  // MARK: - Receiving

  func read(context: ChannelHandlerContext) {
    if isReading { context.read() } else { wantsRead = true }
  }

  func setReading(_ isReading: Bool) {
    self.isReading = isReading
    guard isReading, wantsRead else { return }
    wantsRead = false
    context?.read()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var frame = unwrapInboundIn(data)
    hasHeard = true
    switch frame.opcode {
    case .connectionClose where state == .closing: context.close(promise: nil)
    case _ where state != .open: break
    // A client masks each frame, and no extension gives the reserved bits a meaning.
    case _ where frame.maskKey == nil || frame.rsv1 || frame.rsv2 || frame.rsv3:
      close(.protocolError, "a frame is not masked, or uses reserved bits")
    case .text, .binary, .continuation: take(&frame)
    case .ping: send(.pong, frame.unmaskedData)
    case .pong: break
    case .connectionClose: close(Self.answer(to: Array(frame.unmaskedData.readableBytesView)), "")
    default: close(.protocolError, "a frame has an unknown opcode")
    }
  }

  private func take(_ frame: inout WebSocketFrame) {
    var bytes = frame.unmaskedData
    let isFirst = frame.opcode != .continuation
    guard isFirst == (message == nil) else {
      return close(.protocolError, "fragments of two messages are mixed")
    }
    var whole = message ?? (frame.opcode, ByteBuffer(), 0)
    message = nil
    whole.fragmentCount += 1
    guard whole.bytes.readableBytes + bytes.readableBytes <= limits.messageByteCount,
      whole.fragmentCount <= limits.fragmentCount
    else { return close(.messageTooLarge, "the message is too large") }
    if isFirst { whole.bytes = bytes } else { whole.bytes.writeBuffer(&bytes) }
    guard frame.fin else { return message = whole }
    if whole.opcode == .text,
      String(validating: whole.bytes.readableBytesView, as: UTF8.self) == nil
    {
      return close(.dataInconsistentWithMessage, "a text message is not UTF-8")
    }
    session.receive(whole.bytes)
  }

  /// The code that answers a close frame with this payload (RFC 6455, 5.5.1 and 7.4): the client's, unless no frame can
  /// have it.
  private static func answer(to payload: [UInt8]) -> UInt16 {
    guard !payload.isEmpty else { return 1000 }
    guard payload.count > 1 else { return 1002 }
    let code = UInt16(payload[0]) << 8 | UInt16(payload[1])
    switch code {
    case 1000...1003, 1007...1014, 3000...4999:
      return String(validating: payload[2...], as: UTF8.self) == nil ? 1007 : code
    default: return 1002
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    switch error {
    // What follows a broken frame: the client must have the time to read why it is closed.
    case is ByteToMessageDecoderError where state == .closing: break
    case NIOWebSocketError.invalidFrameLength: close(.messageTooLarge, "the message is too large")
    case is NIOWebSocketError: close(.protocolError, "a control frame is not valid")
    default: context.close(promise: nil)
    }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is ConnectionSet.Drain { session.serverStops() }
    context.fireUserInboundEventTriggered(event)
  }

  // MARK: - Sending

  func send(_ bytes: [UInt8]) {
    guard state == .open else { return }
    send(Self.opcode(of: bytes), ByteBuffer(bytes: bytes))
    if context?.channel.isWritable == false { session.clientIsSlow() }
  }

  func send(_ bytes: [UInt8], whenSent: @escaping () -> Void) {
    guard state == .open, let context else { return }
    let promise = context.eventLoop.makePromise(of: Void.self)
    promise.futureResult.assumeIsolated().whenSuccess(whenSent)
    send(Self.opcode(of: bytes), ByteBuffer(bytes: bytes), promise)
  }

  /// A text message must be UTF-8 (RFC 6455, 5.6).
  private static func opcode(of bytes: [UInt8]) -> WebSocketOpcode {
    String(validating: bytes, as: UTF8.self) == nil ? .binary : .text
  }

  private func send(
    _ opcode: WebSocketOpcode, _ bytes: ByteBuffer, _ promise: EventLoopPromise<Void>? = nil
  ) {
    guard let context else { return }
    let frame = WebSocketFrame(fin: true, opcode: opcode, data: bytes)
    context.writeAndFlush(wrapOutboundOut(frame), promise: promise)
  }

  func close(_ code: UInt16, _ reason: String) {
    guard state == .open else { return }
    state = .closing
    message = nil
    writeClose(code, reason)
  }

  private func close(_ code: WebSocketErrorCode, _ reason: String) {
    close(UInt16(webSocketErrorCode: code), reason)
  }

  /// Sends a close frame, and closes when the client answers it, or after a time.
  private func writeClose(_ code: UInt16, _ reason: String) {
    guard let context else { return }
    setReading(true)
    var bytes = ByteBuffer(integer: code)
    bytes.writeString(reason)
    send(.connectionClose, bytes)
    let bound = NIOLoopBound(context, eventLoop: eventLoop)
    eventLoop.scheduleTask(in: TimeAmount(limits.closeTime)) { bound.value.close(promise: nil) }
  }

  // MARK: - Time

  private func startTimer() {
    let me = NIOLoopBound(self, eventLoop: eventLoop)
    eventLoop.scheduleTask(in: TimeAmount(limits.pingTime)) { me.value.timePassed() }
  }

  private func timePassed() {
    guard state == .open else { return }
    if !hasHeard {
      if isPinged { return session.clientIsSilent() }
      send(.ping, ByteBuffer())
    }
    isPinged = !hasHeard
    hasHeard = false
    startTimer()
  }
}
