internal import NIOCore
internal import NIOHTTP1
internal import NIOTLS
internal import VaultCrypto

/// A request of a client.
struct ClientRequest: Sendable {
  var method = HTTPMethod.GET
  var target: RequestTarget
  var headers: [(name: String, value: SecretText)] = []
  var body: [UInt8] = []
  /// How long the answer can take, from the moment the request is sent.
  var timeout = Duration.seconds(10)
  /// The largest body of an answer.
  var answerByteCount = 32 << 20
  /// What opens a WebSocket on the connection; nil for other requests.
  var webSocket: WebSocketOpening?
}

/// The answer to a request.
struct ClientResponse: Sendable {
  let status: Int
  let headers: HTTPHeaders
  let body: [UInt8]
  /// The WebSocket that the answer opens.
  var webSocket: WebSocket?
}

/// Why a connection gave no answer.
enum ExchangeFailure: Error {
  /// The connection ended before a byte of the request was written.
  case notSent
  /// The server did not prove who it is, and got no byte of the request.
  case untrusted
  case lost
  case timeout
  case tooLarge
  case malformed
  /// The answer opens no valid WebSocket.
  case malformedHandshake
}

/// Writes the head of a request, secrets included, and wipes the bytes when they are sent.
final class RequestEncoder: ChannelOutboundHandler {
  typealias OutboundIn = HTTPClientRequestPart
  typealias OutboundOut = ByteBuffer

  private let host: String
  /// The request whose head is written next: NIO's own type has no place for a secret.
  var request: ClientRequest?

  init(host: String) { self.host = host }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard case .head = unwrapOutboundIn(data), let request else {
      promise?.succeed()
      return
    }
    self.request = nil
    let headers: [(name: String, value: SecretText)] =
      [("Host", SecretText(host)), ("User-Agent", "DataVault")] + request.headers
      + (request.body.isEmpty && request.method == .GET
        ? [] : [("Content-Length", SecretText("\(request.body.count)"))])
    let byteCount = headers.reduce(request.target.text.byteCount + 64 + request.body.count) {
      $0 + $1.name.utf8.count + $1.value.byteCount + 4
    }
    // Large enough, so that it is not copied as it grows.
    var buffer = context.channel.allocator.buffer(capacity: byteCount)
    buffer.writeString("\(request.method.rawValue) ")
    request.target.text.write(to: &buffer)
    buffer.writeString(" HTTP/1.1\r\n")
    for header in headers {
      buffer.writeString("\(header.name): ")
      header.value.write(to: &buffer)
      buffer.writeString("\r\n")
    }
    buffer.writeString("\r\n")
    buffer.writeBytes(request.body)
    let sent = promise ?? context.eventLoop.makePromise()
    sent.futureResult.whenComplete { [buffer] _ in buffer.wipe() }
    context.write(wrapOutboundOut(buffer), promise: sent)
  }
}

extension ByteBuffer {
  /// Overwrites the readable bytes for all who share them; only for bytes that were sent.
  func wipe() {
    unsafe withUnsafeReadableBytes { bytes in
      unsafe VaultCrypto.wipe(UnsafeMutableRawBufferPointer(mutating: bytes))
    }
  }
}

/// One HTTP/1.1 connection: a request at a time, and its answer.
final class HTTPExchange: ChannelInboundHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundOut = HTTPClientRequestPart

  private struct Pending {
    let promise: EventLoopPromise<ClientResponse>
    let limit: Int
    let webSocket: WebSocketOpening?
    let timeout: Scheduled<Void>
    var head: HTTPResponseHead?
    var body: [UInt8] = []
  }

  private let encoder: RequestEncoder
  private let protocolSwitch: ProtocolSwitch
  private var context: ChannelHandlerContext?
  private var pending: Pending?
  private var isReusable = true
  private var hasSwitched = false
  /// Whether what is written goes to the server: TLS holds it back until its handshake ends.
  private var isOpen: Bool
  /// Why no request can be sent.
  private var failure = ExchangeFailure.notSent

  init(_ encoder: RequestEncoder, _ protocolSwitch: ProtocolSwitch, isProtected: Bool) {
    self.encoder = encoder
    self.protocolSwitch = protocolSwitch
    isOpen = !isProtected
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }
  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    end(.lost)
  }

  /// Whether another request can follow.
  var canSend: Bool {
    isReusable && !hasSwitched && pending == nil && context?.channel.isActive == true
  }

  func send(_ request: ClientRequest, _ promise: EventLoopPromise<ClientResponse>) {
    guard canSend, let context else { return promise.fail(failure) }
    let me = NIOLoopBound(self, eventLoop: context.eventLoop)
    let timeout = context.eventLoop.scheduleTask(in: TimeAmount(request.timeout)) {
      me.value.end(.timeout)
    }
    pending = Pending(
      promise: promise, limit: request.answerByteCount,
      webSocket: request.webSocket, timeout: timeout)
    protocolSwitch.isExpected = request.webSocket != nil
    encoder.request = request
    let head = HTTPRequestHead(version: .http1_1, method: request.method, uri: "")
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard pending != nil else {
      // After a switch, the end of the answer comes behind its head.
      if !hasSwitched { context.close(promise: nil) }
      return
    }
    switch unwrapInboundIn(data) {
    case .head(let head):
      pending?.head = head
      protocolSwitch.isExpected = false
      isReusable = head.isKeepAlive
      if let pending, let length = head.headers.first(name: "content-length"),
        Int(length) ?? .max > pending.limit
      {
        return end(.tooLarge)
      }
      if head.status == .switchingProtocols { switchProtocols(head, context) }
    case .body(let bytes):
      // In place: a copy of `pending` would copy the body with each piece.
      guard let count = pending?.body.count, let limit = pending?.limit,
        bytes.readableBytes <= limit - count
      else { return end(.tooLarge) }
      pending?.body += bytes.readableBytesView
    case .end: finish()
    }
  }

  /// What follows is no HTTP: the WebSocket takes the connection over.
  private func switchProtocols(_ head: HTTPResponseHead, _ context: ChannelHandlerContext) {
    guard let opening = pending?.webSocket else { return end(.malformed) }
    do {
      let webSocket = try opening.open(head.headers, context.channel, behind: protocolSwitch)
      hasSwitched = true
      finish(webSocket)
    } catch {
      end(.malformedHandshake)
    }
  }

  private func finish(_ webSocket: WebSocket? = nil) {
    guard let pending, let head = pending.head else { return }
    self.pending = nil
    pending.timeout.cancel()
    pending.promise.succeed(
      ClientResponse(
        status: Int(head.status.code), headers: head.headers, body: pending.body,
        webSocket: webSocket))
  }

  /// Fails what waits, and closes.
  private func end(_ failure: ExchangeFailure) {
    isReusable = false
    // A server that is not known yet got nothing.
    let failure = isOpen || failure == .untrusted ? failure : .notSent
    if failure == .untrusted { self.failure = failure }
    // First, because the end of the connection is a failure of its own.
    let pending = pending.take()
    pending?.timeout.cancel()
    pending?.promise.fail(failure)
    context?.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    end(.lost)
    context.fireChannelInactive()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case TLSUserEvent.handshakeCompleted = event { isOpen = true }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    switch error {
    case HTTPParserError.invalidEOFState: end(.lost)
    case is HTTPParserError, is ByteToMessageDecoderError.PayloadTooLargeError: end(.malformed)
    case _ where TLSFailure.isDistrust(error): end(isOpen ? .lost : .untrusted)
    default: end(.lost)
    }
  }
}
