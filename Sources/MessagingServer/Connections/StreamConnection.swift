internal import NIOCore

/// One connection whose session reads and writes bytes, without HTTP.
final class StreamConnection: ChannelInboundHandler, ClientTransport {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private enum State {
    case open
    /// What the client still sends is dropped.
    case closing
    case closed
  }

  /// The most bytes that wait to be sent before the client counts as slow.
  private static let waitingByteCount = 1 << 20
  /// How long the client can take to read the last bytes and to close.
  ///
  /// A connection that closes before everything is read would be reset, and the client would not see them.
  private static let closeTime = TimeAmount.seconds(1)

  let eventLoop: any EventLoop
  let isProtected: Bool
  let source: LoginSource
  private let session: any ClientSession
  private var context: ChannelHandlerContext?
  private var state = State.open

  init(
    _ session: any ClientSession, isProtected: Bool, from source: LoginSource,
    on eventLoop: any EventLoop
  ) {
    self.session = session
    self.isProtected = isProtected
    self.source = source
    self.eventLoop = eventLoop
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    _ = context.channel.setOption(
      .writeBufferWaterMark,
      value: .init(low: Self.waitingByteCount / 2, high: Self.waitingByteCount))
    session.begin(self)
  }

  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func channelInactive(context: ChannelHandlerContext) {
    state = .closed
    session.end()
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if state == .open { session.receive(unwrapInboundIn(data)) }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is ConnectionSet.Drain { session.serverStops() }
    context.fireUserInboundEventTriggered(event)
  }

  func setReading(_ isReading: Bool) {
    _ = context?.channel.setOption(.autoRead, value: isReading)
  }

  func send(_ bytes: [UInt8]) {
    guard state == .open, let context else { return }
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
    if !context.channel.isWritable { session.clientIsSlow() }
  }

  func send(_ bytes: [UInt8], whenSent: @escaping () -> Void) {
    guard state == .open, let context else { return }
    let promise = context.eventLoop.makePromise(of: Void.self)
    promise.futureResult.assumeIsolated().whenSuccess(whenSent)
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: promise)
  }

  func close(_ code: UInt16, _ reason: String) {
    guard state == .open, let context else { return }
    state = .closing
    setReading(true)
    let bound = NIOLoopBound(context, eventLoop: eventLoop)
    eventLoop.scheduleTask(in: Self.closeTime) { bound.value.close(promise: nil) }
  }
}
