internal import NIOCore

/// One connection whose session reads and writes bytes, without HTTP.
final class StreamConnection: ChannelInboundHandler, ClientTransport {
  typealias InboundIn = ByteBuffer

  private enum State {
    case open
    /// What the client still sends is dropped.
    case closing
    case closed
  }

  /// How long the client can take to read the last bytes and to close.
  ///
  /// A connection that closes before everything is read would be reset, and the client would not see them.
  private static let closeTime = TimeAmount.seconds(1)

  let eventLoop: any EventLoop
  let isProtected: Bool
  let source: LoginSource
  let memory: MemoryAccount?
  private let session: any ClientSession
  private var context: ChannelHandlerContext?
  private var writer: ConnectionWriter?
  private var state = State.open

  init(
    _ session: any ClientSession, isProtected: Bool, from source: LoginSource,
    memory: MemoryAccount? = nil, on eventLoop: any EventLoop
  ) {
    self.session = session
    self.isProtected = isProtected
    self.source = source
    self.memory = memory
    self.eventLoop = eventLoop
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    writer = ConnectionWriter(context, OutputLimits(), memory) { [weak self] in
      self?.session.clientHasRead()
    } didStall: { [weak self] in
      self?.session.clientIsSlow()
    }
    session.begin(self)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    writer = nil
  }

  func channelInactive(context: ChannelHandlerContext) {
    state = .closed
    writer?.end()
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
    switch event {
    case is ConnectionSet.Drain: session.serverStops()
    case is MemoryLedger.End where isIdle: session.clientHoldsTooMuch()
    case is MemoryLedger.End: context.close(promise: nil)
    default: break
    }
    context.fireUserInboundEventTriggered(event)
  }

  func setReading(_ isReading: Bool) {
    _ = context?.channel.setOption(.autoRead, value: isReading)
  }

  var isIdle: Bool { writer?.isIdle ?? true }

  func send(_ bytes: [UInt8]) {
    guard state == .open, let writer else { return }
    writer.write(ByteBuffer(bytes: bytes))
    if writer.isFull { session.clientIsSlow() }
  }

  func send(_ bytes: [UInt8], whenSent: @escaping () -> Void) {
    guard state == .open else { return }
    writer?.write(ByteBuffer(bytes: bytes), whenSent: whenSent)
  }

  func close(_ code: UInt16, _ reason: String) {
    guard state == .open, let context else { return }
    state = .closing
    setReading(true)
    let bound = NIOLoopBound(context, eventLoop: eventLoop)
    eventLoop.scheduleTask(in: Self.closeTime) { bound.value.close(promise: nil) }
  }
}
