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
              // An address is in no SNI; its certificate is checked against the address.
              let isAddress = (try? SocketAddress(ipAddress: host, port: 0)) != nil
              try channel.pipeline.syncOperations.addHandler(
                NIOSSLClientHandler(context: tls, serverHostname: isAddress ? nil : host))
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

  /// Opens a connection for requests.
  func openHTTP() async throws(MessagingClientError) -> HTTPConnection {
    let host = origin.description.split(separator: "/").last.map(String.init) ?? origin.host
    return try await open { channel in
      let encoder = RequestEncoder(host: host)
      let decoder = ByteToMessageHandler(HTTPResponseDecoder(leftOverBytesStrategy: .forwardBytes))
      let exchange = HTTPExchange(encoder)
      try channel.pipeline.syncOperations.addHandlers(encoder, decoder, exchange)
      return HTTPConnection(channel, encoder, decoder, exchange)
    }
  }
}

/// A connection for requests, as tasks use it.
struct HTTPConnection: Sendable {
  let channel: any Channel
  private let encoder: NIOLoopBound<RequestEncoder>
  private let decoder: NIOLoopBound<ByteToMessageHandler<HTTPResponseDecoder>>
  private let exchange: NIOLoopBound<HTTPExchange>

  init(
    _ channel: any Channel, _ encoder: RequestEncoder,
    _ decoder: ByteToMessageHandler<HTTPResponseDecoder>, _ exchange: HTTPExchange
  ) {
    self.channel = channel
    self.encoder = NIOLoopBound(encoder, eventLoop: channel.eventLoop)
    self.decoder = NIOLoopBound(decoder, eventLoop: channel.eventLoop)
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

  /// Replaces HTTP by other handlers after an answer that switches protocols; bytes behind the answer go to them.
  func upgrade<Result: Sendable>(
    _ configure: @escaping @Sendable (any Channel) throws -> Result
  ) async throws -> Result {
    let removal = channel.eventLoop.flatSubmit { [channel, encoder, decoder, exchange] in
      do {
        let result = try configure(channel)
        let pipeline = channel.pipeline.syncOperations
        let removals = [
          pipeline.removeHandler(exchange.value), pipeline.removeHandler(encoder.value),
          // Last, because it forwards what it has.
          pipeline.removeHandler(decoder.value),
        ]
        return EventLoopFuture.andAllSucceed(removals, on: channel.eventLoop).map { result }
      } catch {
        return channel.eventLoop.makeFailedFuture(error)
      }
    }
    return try await removal.get()
  }

  func close() { channel.close(promise: nil) }
}

extension TimeAmount {
  init(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    self = .nanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
  }
}
