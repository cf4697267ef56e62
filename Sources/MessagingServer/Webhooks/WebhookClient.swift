internal import ApplicationStore
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL
internal import Synchronization

/// How the server sends webhooks.
package struct WebhookConfiguration: Sendable {
  /// Whether webhooks reach this machine and private networks, and use plain HTTP.
  ///
  /// Default: false.
  package var allowsPrivate = false
  /// Whom the certificates of receivers are verified by.
  ///
  /// Default: the system's authorities.
  var trustRoots = NIOSSLTrustRoots.default
  /// Finds the addresses of a host.
  var resolver = HostLookup.system
  /// How long an attempt takes at most.
  var attemptTime = WebhookSchedule.attemptTime

  package init() {}
}

/// Why an attempt to deliver failed.
///
/// Its text names neither the URL nor anything that the receiver has sent.
enum WebhookFailure: Error, Sendable, Equatable, CustomStringConvertible {
  case plainHTTP, noAddress, refusedAddress, unreachable, insecure, brokenAnswer, timeout
  case status(Int)

  var description: String {
    switch self {
    case .plainHTTP: "plain HTTP needs --allow-private-webhooks"
    case .noAddress: "its host has no address"
    case .refusedAddress: "its host has an address that webhooks do not reach"
    case .unreachable: "no connection to its host"
    case .insecure: "no secure connection to its host"
    case .brokenAnswer: "its answer is broken"
    case .timeout: "no answer in time"
    case .status(let status): "its answer has status \(status)"
    }
  }
}

/// Sends a body to the URL of a webhook: one POST, on a connection of its own.
///
/// The host is looked up once. All its addresses are checked, and the connection goes to one of them, so that no second
/// answer of a name server leads elsewhere. A redirect is a failure like each status but 2xx.
final class WebhookClient: Sendable {
  /// The most addresses of a host that are tried.
  private static let addressCount = 3
  private static let connectTime = TimeAmount.seconds(4)

  private let configuration: WebhookConfiguration
  private let eventLoops: any EventLoopGroup
  private let lookup: HostLookup
  /// Made with the first connection that needs it: it reads the authorities from the disk.
  private let context = Mutex<NIOSSLContext?>(nil)

  init(_ configuration: WebhookConfiguration, on eventLoops: any EventLoopGroup) {
    self.configuration = configuration
    self.eventLoops = eventLoops
    lookup = HostLookup(configuration.resolver)
  }

  /// Sends a body, and waits for a status of 2xx.
  ///
  /// - Throws: ``WebhookFailure``, after the time of an attempt at the latest; `CancellationError`.
  func post(
    _ body: [UInt8], to url: WebhookURL, headers: [(String, String)]
  ) async throws {
    guard url.usesTLS || configuration.allowsPrivate else { throw WebhookFailure.plainHTTP }
    let eventLoop = eventLoops.next()
    let attempt = NIOLoopBoundBox.makeBoxSendingValue(
      WebhookAttempt(on: eventLoop), eventLoop: eventLoop)
    let status = try await withTaskCancellationHandler {
      try await eventLoop.flatSubmit { [self] in
        begin(attempt.value, body, url, headers)
        return attempt.value.status
      }.get()
    } onCancel: {
      eventLoop.execute { attempt.value.end(.failure(CancellationError())) }
    }
    guard (200..<300).contains(status) else { throw WebhookFailure.status(status) }
  }

  /// Looks up the host, and tries its addresses.
  private func begin(
    _ attempt: WebhookAttempt, _ body: [UInt8], _ url: WebhookURL, _ headers: [(String, String)]
  ) {
    let eventLoop = attempt.eventLoop
    attempt.end(after: configuration.attemptTime)
    lookup.addresses(of: url.host, on: eventLoop).assumeIsolated().whenComplete { [self] result in
      guard case .success(let found) = result, !found.isEmpty else {
        return attempt.end(.failure(WebhookFailure.noAddress))
      }
      guard found.allSatisfy(allows) else {
        return attempt.end(.failure(WebhookFailure.refusedAddress))
      }
      var head = HTTPRequestHead(version: .http1_1, method: .POST, uri: url.target)
      head.headers.add(name: "Host", value: url.authority)
      for (name, value) in headers { head.headers.add(name: name, value: value) }
      head.headers.add(name: "Content-Length", value: "\(body.count)")
      head.headers.add(name: "Connection", value: "close")
      let request = WebhookRequest(head: head, body: ByteBuffer(bytes: body))
      connect(attempt, found.prefix(Self.addressCount), request, url)
    }
  }

  private func allows(_ address: SocketAddress) -> Bool {
    switch WebhookAddress(address) {
    case .public: true
    case .private: configuration.allowsPrivate
    case .forbidden: false
    }
  }

  private func connect(
    _ attempt: WebhookAttempt, _ addresses: ArraySlice<SocketAddress>, _ request: WebhookRequest,
    _ url: WebhookURL
  ) {
    guard !attempt.hasEnded else { return }
    guard var address = addresses.first else {
      return attempt.end(.failure(WebhookFailure.unreachable))
    }
    address.port = url.port
    let bound = NIOLoopBound(attempt, eventLoop: attempt.eventLoop)
    ClientBootstrap(group: attempt.eventLoop).connectTimeout(Self.connectTime)
      .channelInitializer { [self] channel in
        channel.eventLoop.makeCompletedFuture {
          try configure(channel, bound.value, request, url)
        }
      }
      .connect(to: address).assumeIsolated().whenComplete { [self] result in
        if case .failure = result {
          connect(attempt, addresses.dropFirst(), request, url)
        }
      }
  }

  private func configure(
    _ channel: any Channel, _ attempt: WebhookAttempt, _ request: WebhookRequest, _ url: WebhookURL
  ) throws {
    let pipeline = channel.pipeline.syncOperations
    if url.usesTLS {
      // A numeric address is no name for SNI: the certificate must have the address then.
      let isNumeric = (try? SocketAddress(ipAddress: url.host, port: 0)) != nil
      try pipeline.addHandler(
        NIOSSLClientHandler(context: tlsContext(), serverHostname: isNumeric ? nil : url.host))
    }
    var limits = NIOHTTPDecoderLimitConfiguration()
    limits.maxHeaderFieldSize = 16 << 10
    limits.maxHeaderListSize = 64 << 10
    limits.maxHeaderFieldCount = 100
    try pipeline.addHTTPClientHandlers(decoderLimitConfiguration: limits)
    try pipeline.addHandler(WebhookConnection(attempt, request))
  }

  private func tlsContext() throws -> NIOSSLContext {
    try context.withLock { context in
      if let context { return context }
      var configuration = TLSConfiguration.makeClientConfiguration()
      configuration.minimumTLSVersion = .tlsv12
      configuration.applicationProtocols = ["http/1.1"]
      configuration.trustRoots = self.configuration.trustRoots
      let made = try NIOSSLContext(configuration: configuration)
      context = made
      return made
    }
  }
}

/// What is sent.
private struct WebhookRequest: Sendable {
  let head: HTTPRequestHead
  let body: ByteBuffer
}

/// One attempt, on its event loop: ends once, with a status or an error, and closes its connection.
private final class WebhookAttempt {
  let eventLoop: any EventLoop
  private let promise: EventLoopPromise<Int>
  private(set) var hasEnded = false
  private var timer: Scheduled<Void>?
  var channel: (any Channel)?

  init(on eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
    promise = eventLoop.makePromise()
  }

  var status: EventLoopFuture<Int> { promise.futureResult }

  /// Ends the attempt as a failure, unless it ends before.
  func end(after time: Duration) {
    timer = eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(time)) {
      self.end(.failure(WebhookFailure.timeout))
    }
  }

  func end(_ result: Result<Int, any Error>) {
    guard !hasEnded else { return }
    hasEnded = true
    timer?.cancel()
    channel?.close(promise: nil)
    promise.completeWith(result)
  }
}

/// Sends the request when the connection is there, and reads the answer.
private final class WebhookConnection: ChannelInboundHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundOut = HTTPClientRequestPart

  /// How many bytes of an answer's body are read; what follows does not matter.
  private static let bodyByteCount = 64 << 10

  private let attempt: WebhookAttempt
  private let request: WebhookRequest
  private var status: Int?
  private var byteCount = 0

  init(_ attempt: WebhookAttempt, _ request: WebhookRequest) {
    self.attempt = attempt
    self.request = request
  }

  func channelActive(context: ChannelHandlerContext) {
    attempt.channel = context.channel
    // It ended while it connected.
    if attempt.hasEnded { return context.close(promise: nil) }
    context.write(wrapOutboundOut(.head(request.head)), promise: nil)
    context.write(wrapOutboundOut(.body(.byteBuffer(request.body))), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): status = Int(head.status.code)
    case .body(let bytes):
      byteCount += bytes.readableBytes
      if byteCount > Self.bodyByteCount { end() }
    case .end: end()
    }
  }

  func channelInactive(context: ChannelHandlerContext) { end() }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    switch error {
    case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError:
      // Some receivers close without TLS's farewell.
      end(else: status == nil ? .insecure : .brokenAnswer)
    case is HTTPParserError:
      status = nil
      end()
    default: end(else: .unreachable)
    }
  }

  /// Ends the attempt with the status, if there is one.
  private func end(else failure: WebhookFailure = .brokenAnswer) {
    attempt.end(status.map { .success($0) } ?? .failure(failure))
  }
}
