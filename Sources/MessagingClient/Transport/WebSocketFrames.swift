internal import NIOCore
internal import NIOWebSocket

/// A message of a WebSocket, or its end.
enum WebSocketEvent: Sendable, Equatable {
  case message([UInt8])
  /// - Parameter code: 1006 if the connection was lost without a close frame.
  case closed(code: UInt16, reason: String)
}

/// The frames of a client's WebSocket (RFC 6455): messages out and in, pings answered, and the closing handshake.
final class WebSocketFrames: ChannelInboundHandler {
  typealias InboundIn = WebSocketFrame
  typealias OutboundOut = WebSocketFrame

  /// The largest message, in bytes, and the most fragments of one.
  private let limits: (byteCount: Int, fragmentCount: Int)
  private let inbox: Inbox<WebSocketEvent>
  private var context: ChannelHandlerContext?
  private var message: (opcode: WebSocketOpcode, bytes: ByteBuffer, fragmentCount: Int)?
  private var isClosing = false
  private var ending: WebSocketEvent?

  init(_ inbox: Inbox<WebSocketEvent>, messageByteCount: Int) {
    self.inbox = inbox
    limits = (messageByteCount, 1024)
  }

  static func configure(
    _ channel: any Channel, _ inbox: Inbox<WebSocketEvent>, messageByteCount: Int,
    position: ChannelPipeline.SynchronousOperations.Position = .last
  ) throws -> NIOLoopBound<WebSocketFrames> {
    let frames = WebSocketFrames(inbox, messageByteCount: messageByteCount)
    let handlers: [any ChannelHandler] = [
      ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: messageByteCount)),
      WrittenBytesWiper(), WebSocketFrameEncoder(), frames,
    ]
    try channel.pipeline.syncOperations.addHandlers(handlers, position: position)
    return NIOLoopBound(frames, eventLoop: channel.eventLoop)
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }
  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    // If the connection ended before the handler was added, nothing else tells the reader.
    inbox.end(with: ending ?? .closed(code: 1006, reason: ""))
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let frame = unwrapInboundIn(data)
    switch frame.opcode {
    // A server masks no frame, and no extension gives the reserved bits a meaning.
    case _ where frame.maskKey != nil || frame.rsv1 || frame.rsv2 || frame.rsv3:
      if isClosing { return context.close(promise: nil) }
      fail(context, .protocolError)
    case .connectionClose:
      note(closing: frame)
      if isClosing { return context.close(promise: nil) }
      close(context, frame.data)
      limitClosing(context)
    case _ where isClosing: break
    case .text, .binary, .continuation: take(frame, context)
    // A server that sends pings and reads no pong fills no memory: RFC 6455, 5.5.3, asks for the newest alone.
    case .ping where context.channel.isWritable: send(.pong, frame.data, context)
    case .ping: break
    case .pong: break
    default: fail(context, .protocolError)
    }
  }

  private func take(_ frame: WebSocketFrame, _ context: ChannelHandlerContext) {
    var bytes = frame.data
    let isFirst = frame.opcode != .continuation
    guard isFirst == (message == nil) else { return fail(context, .protocolError) }
    var whole = message ?? (frame.opcode, ByteBuffer(), 0)
    message = nil
    whole.fragmentCount += 1
    guard whole.bytes.readableBytes + bytes.readableBytes <= limits.byteCount,
      whole.fragmentCount <= limits.fragmentCount
    else { return fail(context, .messageTooLarge) }
    if isFirst { whole.bytes = bytes } else { whole.bytes.writeBuffer(&bytes) }
    guard frame.fin else { return message = whole }
    let content = Array(whole.bytes.readableBytesView)
    if whole.opcode == .text, String(validating: content, as: UTF8.self) == nil {
      return fail(context, .dataInconsistentWithMessage)
    }
    if inbox.put(.message(content), byteCount: content.count + Self.eventByteCount) { return }
    // The reader is behind: TCP slows the server down.
    _ = context.channel.setOption(.autoRead, value: false)
  }

  /// What a message takes beside its bytes: a flood of empty ones is limited too.
  private static let eventByteCount = 128

  private func note(closing frame: WebSocketFrame) {
    var bytes = frame.data
    let code = bytes.readInteger(as: UInt16.self) ?? 1005
    ending = ending ?? .closed(code: code, reason: String(buffer: bytes))
  }

  private func fail(_ context: ChannelHandlerContext, _ code: WebSocketErrorCode) {
    guard !isClosing else { return }
    ending = .closed(code: UInt16(webSocketErrorCode: code), reason: "")
    var bytes = ByteBuffer()
    bytes.write(webSocketErrorCode: code)
    close(context, bytes)
    context.flush()
    context.close(promise: nil)
  }

  private func close(_ context: ChannelHandlerContext, _ payload: ByteBuffer) {
    isClosing = true
    message = nil
    send(.connectionClose, payload, context)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    switch error {
    case NIOWebSocketError.invalidFrameLength: fail(context, .messageTooLarge)
    case is NIOWebSocketError: fail(context, .protocolError)
    default: context.close(promise: nil)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    inbox.end(with: ending ?? .closed(code: 1006, reason: ""))
    context.fireChannelInactive()
  }

  // MARK: - Sending

  func send(_ opcode: WebSocketOpcode, _ bytes: ByteBuffer, _ promise: EventLoopPromise<Void>) {
    guard let context, !isClosing else { return promise.fail(ChannelError.ioOnClosedChannel) }
    send(opcode, bytes, context, promise)
  }

  /// How long the server can take to answer a close frame, and to end the connection after its own.
  private static let closeTime = TimeAmount.seconds(5)

  func close(_ code: UInt16) {
    guard let context, !isClosing else { return }
    close(context, ByteBuffer(integer: code))
    limitClosing(context)
  }

  private func limitClosing(_ context: ChannelHandlerContext) {
    let channel = context.channel
    context.eventLoop.scheduleTask(in: Self.closeTime) { channel.close(promise: nil) }
  }

  private func send(
    _ opcode: WebSocketOpcode, _ bytes: ByteBuffer, _ context: ChannelHandlerContext,
    _ promise: EventLoopPromise<Void>? = nil
  ) {
    let frame = WebSocketFrame(fin: true, opcode: opcode, maskKey: .random(), data: bytes)
    context.writeAndFlush(wrapOutboundOut(frame), promise: promise)
  }
}

/// Wipes the bytes of frames when they are written.
///
/// The encoder masks a copy of each message, and the mask lies beside it: together they are the message.
final class WrittenBytesWiper: ChannelOutboundHandler {
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    let bytes = unwrapOutboundIn(data)
    let written = promise ?? context.eventLoop.makePromise()
    written.futureResult.whenComplete { _ in bytes.wipe() }
    context.write(data, promise: written)
  }
}
