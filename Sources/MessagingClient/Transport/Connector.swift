internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL

/// Opens connections to one origin.
struct Connector: Sendable {
  let origin: Origin
  let connectTime: Duration
  private let tls: NIOSSLContext?
  private let group = MultiThreadedEventLoopGroup.singleton

  /// - Parameter protocols: what TLS offers as the protocol behind it.
  /// - Throws: `invalidArgument` for authorities that cannot be read.
  init(
    _ origin: Origin, _ trust: ServerTrust, connectTime: Duration,
    protocols: [String] = ["http/1.1"]
  ) throws(MessagingClientError) {
    self.origin = origin
    self.connectTime = connectTime
    tls = origin.isProtected ? try trust.context(protocols) : nil
  }

  /// Opens a connection, and configures its pipeline behind TLS.
  func open<Result: Sendable>(
    _ configure: @escaping @Sendable (any Channel) throws -> Result
  ) async throws(MessagingClientError) -> Result {
    // An IPv6 address has brackets in an origin alone.
    let (tls, host) = (tls, String(origin.host.drop { $0 == "[" }.prefix { $0 != "]" }))
    do {
      return try await ClientBootstrap(group: group)
        .connectTimeout(TimeAmount(connectTime))
        .channelOption(.tcpOption(.tcp_nodelay), value: 1)
        .connect(host: host, port: origin.port) { channel in
          channel.eventLoop.makeCompletedFuture {
            if let tls {
              try channel.pipeline.syncOperations.addHandler(Self.handler(tls, host))
            }
            return try configure(channel)
          }
        }
    } catch {
      throw MessagingClientError(
        .cannotConnect, "no connection to \(origin)",
        hint: "check the address, and that the server runs")
    }
  }

  /// Opens a connection for bytes.
  func openStream() async throws(MessagingClientError) -> ByteStream {
    let inbox = Inbox<ByteStreamEvent>()
    let channel = try await open { channel in
      try channel.pipeline.syncOperations.addHandler(ByteStreamHandler(inbox))
      return channel
    }
    return ByteStream(channel, inbox)
  }

  private static func handler(_ tls: NIOSSLContext, _ host: String) throws -> NIOSSLClientHandler {
    // An address is in no SNI; its certificate is checked against the address.
    if (try? SocketAddress(ipAddress: host, port: 0)) != nil {
      return try NIOSSLClientHandler(context: tls, serverHostname: nil)
    }
    // The public callbacks of NIOSSL replace its check of the chain, and its public API gives the names of a
    // certificate only as DER. Two functions with an underscore add a check here, and read the names for it.
    return try NIOSSLClientHandler._makeSSLClientHandler(context: tls, serverHostname: host) {
      certificate, channel in
      ServerTrust.isNamed(host, in: certificate)
        ? channel.eventLoop.makeSucceededVoidFuture()
        : channel.eventLoop.makeFailedFuture(NIOSSLExtraError.failedToValidateHostname)
    }
  }

  /// What the head of an answer can have; the token of Kerberos in a challenge has up to 64 KiB.
  private static var headLimits: NIOHTTPDecoderLimitConfiguration {
    var limits = NIOHTTPDecoderLimitConfiguration()
    limits.maxHeaderListSize = 256 << 10
    return limits
  }

  static func decoder() -> ByteToMessageHandler<HTTPResponseDecoder> {
    ByteToMessageHandler(HTTPResponseDecoder(limitConfiguration: headLimits))
  }

  /// Opens a connection for requests.
  func openHTTP() async throws(MessagingClientError) -> HTTPConnection {
    let host = origin.description.split(separator: "/").last.map(String.init) ?? origin.host
    return try await open { [origin] channel in
      let (protocolSwitch, encoder) = (ProtocolSwitch(), RequestEncoder(host: host))
      let exchange = HTTPExchange(encoder, protocolSwitch, isProtected: origin.isProtected)
      try channel.pipeline.syncOperations.addHandlers(
        protocolSwitch, encoder, Self.decoder(), exchange)
      return HTTPConnection(channel, exchange)
    }
  }
}

/// A connection for requests, as tasks use it.
struct HTTPConnection: Sendable {
  let channel: any Channel
  private let exchange: NIOLoopBound<HTTPExchange>

  init(_ channel: any Channel, _ exchange: HTTPExchange) {
    self.channel = channel
    self.exchange = NIOLoopBound(exchange, eventLoop: channel.eventLoop)
  }

  /// - Throws: ``ExchangeFailure``, `CancellationError`, or an error of TLS.
  func send(_ request: ClientRequest) async throws -> ClientResponse {
    let promise = channel.eventLoop.makePromise(of: ClientResponse.self)
    channel.eventLoop.execute { [exchange] in exchange.value.send(request, promise) }
    return try await withTaskCancellationHandler {
      do {
        return try await promise.futureResult.get()
      } catch {
        throw Task.isCancelled ? CancellationError() : error
      }
    } onCancel: {
      channel.close(promise: nil)
    }
  }

  /// Whether another request can follow.
  func canSend() async -> Bool {
    let isReady = try? await channel.eventLoop.submit { [exchange] in exchange.value.canSend }.get()
    return isReady ?? false
  }

  func close() { channel.close(promise: nil) }
}

extension TimeAmount {
  /// A duration; one of more than a hundred years is that long.
  init(_ duration: Duration) {
    let (seconds, attoseconds) = min(duration, .seconds(3_155_760_000)).components
    self = .nanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
  }
}
