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
  var output = OutputLimits()
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

  private enum State {
    case open
    /// A close frame was sent; what the client still sends is dropped.
    case closing
    case closed
  }

  let eventLoop: any EventLoop
  let isProtected: Bool
  let source: LoginSource
  let memory: MemoryAccount?
  private let limits: WebSocketLimits
  private let session: any ClientSession
  private var context: ChannelHandlerContext?
  private var writer: ConnectionWriter?
  private var state = State.open
  private var isReading = true
  private var wantsRead = false
  /// The message whose last fragment has not come.
  private var message: (opcode: WebSocketOpcode, bytes: ByteBuffer, fragmentCount: Int)? {
    didSet { memory?.hold(message?.bytes.storageCapacity ?? 0, .fragments) }
  }
  /// The payload of the newest ping without an answer.
  private var ping: ByteBuffer?
  private var hasHeard = true
  private var isPinged = false

  init(
    _ session: any ClientSession, limits: WebSocketLimits, isProtected: Bool,
    from source: LoginSource, memory: MemoryAccount? = nil, on eventLoop: any EventLoop
  ) {
    self.session = session
    self.limits = limits
    self.isProtected = isProtected
    self.source = source
    self.memory = memory
    self.eventLoop = eventLoop
  }

  /// Adds the frame decoder and this handler behind the handler of a finished handshake.
  static func configure(
    _ pipeline: ChannelPipeline.SynchronousOperations, _ connection: WebSocketConnection
  ) throws {
    try pipeline.addHandlers(
      ByteToMessageHandler(FrameDecoder(connection.limits.messageByteCount, connection.memory)),
      connection)
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    writer = ConnectionWriter(context, limits.output, memory) { [weak self] in
      self?.answerPing()
      self?.session.clientHasRead()
    } didStall: { [weak self] in
      self?.session.clientIsSlow()
    }
    startTimer()
    session.begin(self)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    writer = nil
  }

  func channelInactive(context: ChannelHandlerContext) {
    state = .closed
    writer?.end()
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
    case .ping:
      ping = frame.unmaskedData
      answerPing()
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

  /// Answers the newest ping once the client has read what was sent before (RFC 6455, 5.5.3): pongs must not pile up.
  private func answerPing() {
    guard state == .open, isIdle, let ping else { return }
    self.ping = nil
    send(.pong, ping)
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
    switch event {
    case is ConnectionSet.Drain: session.serverStops()
    case is MemoryLedger.End where isIdle && state == .open: session.clientHoldsTooMuch()
    case is MemoryLedger.End: context.close(promise: nil)
    default: break
    }
    context.fireUserInboundEventTriggered(event)
  }

  // MARK: - Sending

  var isIdle: Bool { writer?.isIdle ?? true }

  func send(_ bytes: [UInt8]) {
    guard state == .open else { return }
    send(Self.opcode(of: bytes), ByteBuffer(bytes: bytes))
    if writer?.isFull == true { session.clientIsSlow() }
  }

  func send(_ bytes: [UInt8], whenSent: @escaping () -> Void) {
    guard state == .open else { return }
    send(Self.opcode(of: bytes), ByteBuffer(bytes: bytes), whenSent)
  }

  /// A text message must be UTF-8 (RFC 6455, 5.6).
  private static func opcode(of bytes: [UInt8]) -> WebSocketOpcode {
    String(validating: bytes, as: UTF8.self) == nil ? .binary : .text
  }

  /// Sends a frame without a mask (RFC 6455, 5.2).
  private func send(
    _ opcode: WebSocketOpcode, _ bytes: ByteBuffer, _ whenSent: (() -> Void)? = nil
  ) {
    guard let context else { return }
    let byteCount = bytes.readableBytes
    var frame = context.channel.allocator.buffer(capacity: byteCount + 10)
    frame.writeInteger(0x80 | UInt8(webSocketOpcode: opcode))
    switch byteCount {
    case ..<126: frame.writeInteger(UInt8(byteCount))
    case ...Int(UInt16.max): frame.writeMultipleIntegers(UInt8(126), UInt16(byteCount))
    default: frame.writeMultipleIntegers(UInt8(127), UInt64(byteCount))
    }
    frame.writeImmutableBuffer(bytes)
    writer?.write(frame, whenSent: whenSent)
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

/// Decodes frames, and notes what is kept of one that has not ended.
private struct FrameDecoder: ByteToMessageDecoder {
  typealias InboundOut = WebSocketFrame

  private let decoder: WebSocketFrameDecoder
  private let memory: MemoryAccount?

  init(_ maximumByteCount: Int, _ memory: MemoryAccount?) {
    decoder = WebSocketFrameDecoder(maxFrameSize: maximumByteCount)
    self.memory = memory
  }

  func decode(context: ChannelHandlerContext, buffer: inout ByteBuffer) throws -> DecodingState {
    defer { memory?.hold(buffer.readableBytes, .input) }
    return try decoder.decode(context: context, buffer: &buffer)
  }
}
