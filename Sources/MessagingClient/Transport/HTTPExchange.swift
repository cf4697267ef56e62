internal import NIOCore
internal import NIOHTTP1
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
}

/// The answer to a request.
struct ClientResponse: Sendable {
  let status: Int
  let headers: HTTPHeaders
  let body: [UInt8]
}

/// Why a connection gave no answer.
enum ExchangeFailure: Error {
  /// The connection ended before a byte of the request was written.
  case notSent
  case lost
  case timeout
  case tooLarge
  case malformed
}

/// Writes the head of a request, secrets included, and wipes the bytes when they are sent.
final class RequestEncoder: ChannelOutboundHandler, RemovableChannelHandler {
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
final class HTTPExchange: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundOut = HTTPClientRequestPart

  private struct Pending {
    let promise: EventLoopPromise<ClientResponse>
    let limit: Int
    let timeout: Scheduled<Void>
    var head: HTTPResponseHead?
    var body: [UInt8] = []
  }

  private let encoder: RequestEncoder
  private var context: ChannelHandlerContext?
  private var pending: Pending?
  private var isReusable = true
  private var hasSwitched = false

  init(_ encoder: RequestEncoder) { self.encoder = encoder }

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
    guard canSend, let context else { return promise.fail(ExchangeFailure.notSent) }
    let me = NIOLoopBound(self, eventLoop: context.eventLoop)
    let timeout = context.eventLoop.scheduleTask(in: TimeAmount(request.timeout)) {
      me.value.end(.timeout)
    }
    pending = Pending(promise: promise, limit: request.answerByteCount, timeout: timeout)
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
      isReusable = head.isKeepAlive
      // What follows is no HTTP: the owner takes the connection over.
      if head.status == .switchingProtocols {
        hasSwitched = true
        finish()
      }
    case .body(let bytes):
      guard let pending, pending.body.count + bytes.readableBytes <= pending.limit else {
        return end(.tooLarge)
      }
      self.pending?.body += bytes.readableBytesView
    case .end: finish()
    }
  }

  private func finish() {
    guard let pending, let head = pending.head else { return }
    self.pending = nil
    pending.timeout.cancel()
    pending.promise.succeed(
      ClientResponse(
        status: Int(head.status.code), headers: head.headers, body: pending.body))
  }

  /// Fails what waits, and closes.
  private func end(_ failure: ExchangeFailure) {
    isReusable = false
    context?.close(promise: nil)
    guard let pending else { return }
    self.pending = nil
    pending.timeout.cancel()
    pending.promise.fail(failure)
  }

  func channelInactive(context: ChannelHandlerContext) {
    end(.lost)
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if let pending, !(error is HTTPParserError) {
      self.pending = nil
      pending.timeout.cancel()
      pending.promise.fail(error)
    }
    end(error is HTTPParserError ? .malformed : .lost)
  }
}
