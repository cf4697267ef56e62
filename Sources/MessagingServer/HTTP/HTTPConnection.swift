internal import NIOCore
internal import NIOHTTP1

/// One connection of HTTP/1.1: reads a request, hands it out, writes the answer, and reads the next.
///
/// While a request is being answered, or its answer waits for the client to read, nothing more is read and answered, so
/// that a client can fill the memory neither with requests nor with answers. A waiting connection has neither a task nor
/// a timer that runs often.
final class HTTPConnection: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundIn = Never

  private enum State {
    /// Between two requests.
    case idle
    case reading(HTTPRequestHead, body: [UInt8])
    case answering(HTTPExchange, keepsAlive: Bool, since: NIODeadline)
    /// The last answer is written, or none can be.
    case closing
  }

  private let limits: HTTPLimits
  private let isProtected: Bool
  private let operations: ServerOperations
  private let memory: MemoryAccount?
  /// For logs.
  private let number: UInt64
  private var rate: RequestRate
  private let answer: @Sendable (HTTPExchange) -> Void
  private var state = State.idle
  private var context: ChannelHandlerContext?
  private var decoder: ByteToMessageHandler<HTTPRequestDecoder>?
  private var input: HTTPInput?
  private var writer: ConnectionWriter?
  /// How long after the last answer the connection closes.
  private var closeTime: TimeAmount?
  private var wantsRead = false
  private var isDraining = false
  /// When the connection is closed, unless it makes progress before.
  private var deadline: NIODeadline?
  private var hasTimer = false

  /// - Parameters:
  ///   - isProtected: whether no one can read or change what passes.
  ///   - answer: takes each request, on the event loop.
  init(
    limits: HTTPLimits, isProtected: Bool, operations: ServerOperations,
    memory: MemoryAccount? = nil, answer: @escaping @Sendable (HTTPExchange) -> Void
  ) {
    self.limits = limits
    self.isProtected = isProtected
    self.operations = operations
    self.memory = memory
    number = operations.nextConnectionNumber()
    rate = RequestRate(limits.rate)
    self.answer = answer
  }

  /// Adds the decoder and this handler to a new connection.
  static func configure(_ channel: any Channel, _ connection: HTTPConnection) throws {
    var decoding = NIOHTTPDecoderLimitConfiguration()
    // A little more than a target can have, so that a longer one is told from a broken request.
    decoding.maxHeaderFieldSize = connection.limits.targetByteCount + 16_384
    // The target counts here too.
    decoding.maxHeaderListSize = connection.limits.targetByteCount + 65_536
    decoding.maxHeaderFieldCount = connection.limits.fieldCount
    let decoder = ByteToMessageHandler(
      // What comes behind a handshake belongs to the WebSocket.
      HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes, limitConfiguration: decoding))
    let input = HTTPInput(connection.memory) { [weak connection] in connection?.wantedInput }
    try channel.pipeline.syncOperations.addHandlers(input, decoder, connection)
    connection.decoder = decoder
    connection.input = input
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    writer = ConnectionWriter(
      context, OutputLimits(stallTime: limits.answerTime), memory
    ) { [weak self] in
      self?.didDrain(context)
    } didStall: {
      context.close(promise: nil)
    }
    if context.channel.isActive { begin(context) }
  }

  func channelActive(context: ChannelHandlerContext) {
    begin(context)
    context.fireChannelActive()
  }

  private func begin(_ context: ChannelHandlerContext) {
    setDeadline(limits.requestTime, context)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    writer?.end()
    writer = nil
  }

  func channelInactive(context: ChannelHandlerContext) {
    if case .answering(let exchange, _, let start) = state {
      exchange.abandon()
      report(exchange, RequestRecord.abandoned, sentByteCount: 0, since: start)
    }
    state = .closing
    deadline = nil
    writer?.end()
    context.fireChannelInactive()
  }

  // MARK: - Reading

  func read(context: ChannelHandlerContext) {
    if wantedInput != nil { context.read() } else { wantsRead = true }
  }

  /// What the decoder can be given: nothing before the last request is answered and the client has read the answer.
  private var wantedInput: HTTPInput.Piece? {
    switch state {
    case .idle: isIdle ? .lines : nil
    case .answering: nil
    case .reading(let head, let body):
      Self.contentLength(of: head).map { .body($0 - body.count) } ?? .lines
    case .closing: .dropped
    }
  }

  /// Reads the next request, if it can be taken.
  private func readNext(_ context: ChannelHandlerContext) {
    input?.pass()
    guard wantsRead, wantedInput != nil else { return }
    wantsRead = false
    context.read()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    take(unwrapInboundIn(data), context)
  }

  /// What a request takes until it is answered, without its body: a target of many names takes a multiple of its bytes.
  private static func byteCount(of head: HTTPRequestHead) -> Int {
    head.headers.reduce(8 * head.uri.utf8.count) { $0 + $1.name.utf8.count + $1.value.utf8.count }
  }

  private static func contentLength(of head: HTTPRequestHead) -> Int? {
    head.headers.first(name: "content-length").flatMap { Int($0) }
  }

  private func take(_ part: HTTPServerRequestPart, _ context: ChannelHandlerContext) {
    switch (part, state) {
    case (.head(let head), .idle):
      setDeadline(limits.requestTime, context)
      // RFC 9112, 3.2: otherwise a proxy and this server could see two hosts.
      let hostCount = head.headers["host"].count
      if hostCount > 1 || hostCount == 0 && head.version != .http1_0 {
        return refuse(.malformed, context)
      }
      let length = Self.contentLength(of: head) ?? 0
      if head.uri.utf8.count > limits.targetByteCount { return refuse(.tooLongTarget, context) }
      if length > limits.bodyByteCount { return refuse(.tooLargeBody, context) }
      if head.headers.first(name: "expect")?.lowercased() == "100-continue" {
        writer?.write(ByteBuffer(string: "HTTP/1.1 100 Continue\r\n\r\n"))
      }
      state = .reading(head, body: [])
      memory?.hold(Self.byteCount(of: head), .request)
    case (.body(let bytes), .reading(let head, var body)):
      guard body.count + bytes.readableBytes <= limits.bodyByteCount else {
        return refuse(.tooLargeBody, context)
      }
      // One owner, so that the bytes are not copied each time.
      state = .closing
      body.append(contentsOf: bytes.readableBytesView)
      memory?.hold(Self.byteCount(of: head) + body.count, .request)
      state = .reading(head, body: body)
    case (.end, .reading(let head, let body)):
      deadline = nil
      hand(head, body, context)
    default: break
    }
  }

  private func hand(
    _ head: HTTPRequestHead, _ body: [UInt8], _ context: ChannelHandlerContext
  ) {
    let request = HTTPRequest(
      method: head.method.rawValue, target: Array(head.uri.utf8), body: body,
      headers: head.headers, isProtected: isProtected,
      source: LoginSource(
        of: head.headers, from: context.remoteAddress, trusting: limits.trustedProxies))
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    let eventLoop = context.eventLoop
    let exchange = HTTPExchange(request, on: eventLoop) { reply in
      if eventLoop.inEventLoop {
        bound.value.finish(reply)
      } else {
        eventLoop.execute { bound.value.finish(reply) }
      }
    }
    let start = NIODeadline.now()
    // The decoder takes what follows for another protocol, and reads no other request.
    let isLast = head.method == .CONNECT || head.headers.contains(name: "upgrade")
    state = .answering(exchange, keepsAlive: head.isKeepAlive && !isLast, since: start)
    guard rate.take(atNanoseconds: start.uptimeNanoseconds) else {
      operations.metrics?.count(.rate)
      return exchange.answer(.tooManyRequests)
    }
    answer(exchange)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    switch (error, state) {
    case (HTTPParserError.headerOverflow, .idle), (HTTPParserError.headerOverflow, .reading):
      refuse(.tooLongTarget, context)
    case (is HTTPParserError, .idle), (is HTTPParserError, .reading):
      refuse(.malformed, context)
    // The decoder reports everything that comes behind what it could not read.
    case (_, .closing): break
    default: context.close(promise: nil)
    }
  }

  // MARK: - Answering

  /// Whether the client has read the last answer.
  private var isIdle: Bool { writer?.isIdle ?? true }

  private func finish(_ reply: HTTPReply) {
    guard case .answering(let exchange, let keepsAlive, let start) = state, let context else {
      return
    }
    switch reply {
    case .response(let response):
      finish(exchange, response, keepsAlive: keepsAlive, since: start, context)
    case .webSocket(let opening):
      report(exchange, 101, sentByteCount: 0, since: start)
      open(opening, from: exchange.request.source, context)
    }
  }

  private func finish(
    _ exchange: HTTPExchange, _ response: HTTPResponse, keepsAlive: Bool, since start: NIODeadline,
    _ context: ChannelHandlerContext
  ) {
    let isKept = keepsAlive && !isDraining
    memory?.hold(0, .request)
    write(response, to: exchange.request.method, keepsAlive: isKept, context)
    report(exchange, response.status, sentByteCount: response.body.count, since: start)
    guard isKept else { return }
    state = .idle
    beginIdle(context)
  }

  /// Waits for the next request, once the client has read the last answer.
  private func beginIdle(_ context: ChannelHandlerContext) {
    guard case .idle = state, isIdle else { return }
    setDeadline(limits.idleTime, context)
    readNext(context)
  }

  /// Hands the connection over to a WebSocket.
  private func open(
    _ opening: WebSocketOpening, from source: LoginSource, _ context: ChannelHandlerContext
  ) {
    state = .closing
    deadline = nil
    memory?.hold(0, .request)
    guard !isDraining, let decoder,
      let response = try? opening.handshake.response(opening.subprotocol)
    else { return context.close(promise: nil) }
    writer?.write(ByteBuffer(string: response))
    let connection = WebSocketConnection(
      opening.makeSession(), limits: opening.limits, isProtected: isProtected,
      from: source, memory: memory, on: context.eventLoop)
    let pipeline = context.pipeline.syncOperations
    do {
      try WebSocketConnection.configure(pipeline, connection)
      input?.passAll()
      if wantsRead { context.read() }
      if let input { _ = pipeline.removeHandler(input) }
      _ = pipeline.removeHandler(self)
      _ = pipeline.removeHandler(decoder)
    } catch {
      context.close(promise: nil)
    }
  }

  /// Answers a request that cannot be read further, and closes.
  private func refuse(_ response: HTTPResponse, _ context: ChannelHandlerContext) {
    let method = if case .reading(let head, _) = state { head.method.rawValue } else { "" }
    // What the client still sends is read and dropped for a moment: a connection that closes before would be reset,
    // and the client would not see the answer (RFC 9112, 9.6).
    write(response, to: method, keepsAlive: false, closesAfter: .seconds(1), context)
    operations.didEnd(
      RequestRecord(
        method: RequestRecord.word(forMethod: method), status: response.status,
        receivedByteCount: 0, sentByteCount: response.body.count, time: .zero, connection: number))
  }

  /// Counts and logs a request that has ended.
  private func report(
    _ exchange: HTTPExchange, _ status: Int, sentByteCount: Int, since start: NIODeadline
  ) {
    let (route, application) = exchange.subject
    let request = exchange.request
    operations.didEnd(
      RequestRecord(
        route: route, method: RequestRecord.word(forMethod: request.method),
        application: application, status: status,
        receivedByteCount: request.target.count + request.body.count,
        sentByteCount: sentByteCount, time: Duration(.now() - start), connection: number))
  }

  private func write(
    _ response: HTTPResponse, to method: String, keepsAlive: Bool,
    closesAfter pause: TimeAmount = .zero, _ context: ChannelHandlerContext
  ) {
    var buffer = context.channel.allocator.buffer(capacity: 384 + response.body.count)
    response.write(to: &buffer, answering: method, keepsAlive: keepsAlive)
    deadline = nil
    if !keepsAlive {
      state = .closing
      closeTime = pause
    }
    writer?.write(buffer)
    if !keepsAlive, isIdle { didDrain(context) }
  }

  /// The client has read the answer.
  private func didDrain(_ context: ChannelHandlerContext) {
    guard let closeTime else { return beginIdle(context) }
    guard closeTime > .zero else { return context.close(promise: nil) }
    let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
    context.eventLoop.scheduleTask(in: closeTime) { bound.value.close(promise: nil) }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case is ConnectionSet.Drain: isDraining = true
    case is ConnectionSet.EndIdle: if case .idle = state { context.close(promise: nil) }
    case is MemoryLedger.End: endForMemory(context)
    default: context.fireUserInboundEventTriggered(event)
    }
  }

  /// Ends the connection, with an answer if its client can read one.
  private func endForMemory(_ context: ChannelHandlerContext) {
    switch state {
    case .answering(let exchange, _, let start) where isIdle:
      exchange.abandon()
      report(exchange, HTTPResponse.outOfMemory.status, sentByteCount: 0, since: start)
      write(.outOfMemory, to: exchange.request.method, keepsAlive: false, context)
    case .reading where isIdle: refuse(.outOfMemory, context)
    case .idle, .reading, .answering, .closing: context.close(promise: nil)
    }
  }

  // MARK: - Time

  /// Closes the connection after a time, unless another deadline replaces this one.
  private func setDeadline(_ time: Duration, _ context: ChannelHandlerContext) {
    deadline = context.eventLoop.now + TimeAmount(time)
    if !hasTimer { startTimer(context) }
  }

  /// Looks at the deadline after the shorter of the limits, so that one timer serves both of them.
  private func startTimer(_ context: ChannelHandlerContext) {
    hasTimer = true
    let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
    let me = NIOLoopBound(self, eventLoop: context.eventLoop)
    context.eventLoop.scheduleTask(in: TimeAmount(min(limits.requestTime, limits.idleTime))) {
      me.value.timePassed(bound.value)
    }
  }

  private func timePassed(_ context: ChannelHandlerContext) {
    hasTimer = false
    guard let deadline else { return }
    if deadline <= context.eventLoop.now {
      context.close(promise: nil)
    } else {
      startTimer(context)
    }
  }
}

extension HTTPResponse {
  fileprivate static let tooLongTarget = HTTPResponse(
    414,
    #"{"status":414,"service":"Balancer","error":true,"message":"Request URI Too Long"}"#)
  fileprivate static let tooLargeBody = HTTPResponse(413, #"[0,"Request Entity Too Large","0"]"#)
  fileprivate static let tooManyRequests: HTTPResponse = {
    var response = HTTPResponse(
      429, #"{"status":429,"service":"Balancer","error":true,"message":"Too Many Requests"}"#)
    response.retryAfter = 1
    return response
  }()
  fileprivate static let outOfMemory: HTTPResponse = {
    var response = HTTPResponse(
      503,
      #"{"status":503,"service":"Balancer","error":true,"message":"The connection holds too much memory"}"#
    )
    response.retryAfter = 1
    return response
  }()
  fileprivate static let malformed = HTTPResponse(
    400, #"{"status":400,"service":"Balancer","error":true,"message":"Bad Request"}"#)
}
