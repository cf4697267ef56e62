internal import Synchronization

/// A client of STOMP 1.2, for our server and for others such as RabbitMQ and ActiveMQ.
///
/// ```swift
/// let client = try STOMPClient(
///   STOMPConfiguration(
///     server: "stomps://messages.example.com:61613", application: "shop",
///     login: .credentials(login: "billing", passcode: passcode)))
/// try await client.send(Array("two books".utf8), to: "/queue/orders", contentType: "text/plain")
/// for try await case .message(let order) in try await client.subscribe(to: "/queue/orders") {
///   try await handle(order)
///   try await order.acknowledge()
/// }
/// ```
///
/// It connects when it is used first, and again after a lost connection while it has subscriptions, until ``close()``.
/// All tasks can use it at the same time.
public final class STOMPClient: Sendable {
  /// What the client was made with.
  public let configuration: STOMPConfiguration
  private let connection: STOMPConnection

  /// - Throws: `invalidArgument` for an address that is none, or authorities that cannot be read.
  public convenience init(_ configuration: STOMPConfiguration) throws(MessagingClientError) {
    let address = try STOMPAddress(configuration.server)
    let log = ClientLog(configuration.logger, client: Self.logName, server: "\(address)")
    self.init(
      configuration, STOMPCredentials(configuration, address.origin),
      try STOMPLinkOpener(address, configuration, log), log)
  }

  static let logName = "stomp"

  init(
    _ configuration: STOMPConfiguration, _ credentials: STOMPCredentials,
    _ opener: STOMPLinkOpener, _ log: ClientLog
  ) {
    self.configuration = configuration
    connection = STOMPConnection(configuration, credentials, opener, log)
  }

  deinit { Task { [connection] in await connection.close() } }

  /// Sends a message; it returns when the server has given the receipt.
  ///
  /// On our server the message is durable then. A server that knows deduplication ids gets the message again after a
  /// lost receipt, and stores it once.
  ///
  /// - Parameters:
  ///   - body: at most 16 MiB; on our server 256 KiB.
  ///   - destination: `/topic/CHANNEL` or `/queue/CHANNEL`.
  ///   - contentType: nil for bytes.
  ///   - headers: for the receivers; neither those of the protocol nor names that begin with `datavault-`.
  /// - Throws: `outcomeUnknown` if the receipt was lost and the server knows no deduplication ids; `forbidden`,
  ///   `refused` and `busy`, after which the message was not sent; `invalidArgument`, and the errors of the connection.
  public func send(
    _ body: [UInt8], to destination: String, contentType: String? = nil,
    headers: [String: String] = [:]
  ) async throws(MessagingClientError) {
    try await connection.publish([
      STOMPFrame.send(body, to: destination, contentType, headers, configuration.cipher)
    ])
  }

  /// Subscribes to a destination; it returns when the server has confirmed it.
  ///
  /// - Parameters:
  ///   - destination: `/topic/CHANNEL`, what is sent from now on; `/queue/CHANNEL`, each message for one of its
  ///     receivers; or what another server knows.
  ///   - consumer: for `/queue/CHANNEL` on our server, a durable subscription of this name. It gets each message once,
  ///     also those that were sent while no client was connected.
  ///   - prefetch: how many messages wait for their acknowledgement at most; nil for the server's own default.
  ///   - mode: by default ``STOMPAcknowledgeMode/clientIndividual`` for `/queue/`, otherwise
  ///     ``STOMPAcknowledgeMode/auto``, which is all that topics have on our server.
  /// - Throws: `forbidden` and `refused` if the server refuses; `unauthenticated`, `cannotConnect`, `busy`,
  ///   `invalidArgument`.
  public func subscribe(
    to destination: String, consumer: String? = nil, prefetch: Int? = nil,
    mode: STOMPAcknowledgeMode? = nil
  ) async throws(MessagingClientError) -> STOMPSubscription {
    let isQueue = destination.utf8.starts(with: "/queue/".utf8)
    guard prefetch ?? 1 > 0 else {
      throw MessagingClientError(.invalidArgument, "the prefetch is not above 0")
    }
    guard consumer == nil || isQueue, consumer.map({ !$0.isEmpty && !$0.contains("/") }) ?? true
    else {
      throw MessagingClientError(
        .invalidArgument, "only a queue has consumers, and a consumer has a name without '/'")
    }
    let feed = STOMPFeed(
      connection.numbers.next(), consumer.map { "\(destination)/\($0)" } ?? destination,
      mode ?? (isQueue ? .clientIndividual : .auto), prefetchCount: prefetch,
      limit: configuration.waitingByteCount)
    _ = try feed.subscribeFrame.encoded()
    // First, so that the client's own subscription ends if this one is cancelled.
    let subscription = STOMPSubscription(feed, connection, configuration.cipher)
    try await connection.add(feed)
    return subscription
  }

  /// Sends messages and acknowledges others, all or nothing; it returns when the server has committed them.
  ///
  /// ```swift
  /// try await client.transaction { transaction in
  ///   try transaction.send(invoice, to: "/queue/invoices")
  ///   try transaction.acknowledge(order)
  /// }
  /// ```
  ///
  /// Nothing is sent before the closure returns, and nothing if it throws. A transaction without acknowledgements is
  /// repeated as a message is.
  ///
  /// - Throws: the error of the closure. `unavailable` if a message can no longer be acknowledged, and `outcomeUnknown` if
  ///   the connection was lost before the receipt: an acknowledged message comes again if nothing was done. Otherwise as
  ///   ``send(_:to:contentType:headers:)``.
  public func transaction<Value>(
    _ body: (STOMPTransaction) async throws -> Value
  ) async throws -> Value {
    let transaction = STOMPTransaction("\(connection.numbers.next())", configuration.cipher)
    let value: Value
    do {
      value = try await body(transaction)
    } catch {
      _ = transaction.end()
      throw error
    }
    let (frames, settlements) = transaction.end()
    guard settlements.allSatisfy({ $0.connection === connection }) else {
      throw MessagingClientError(
        .invalidArgument, "a message of a transaction is another client's")
    }
    if settlements.isEmpty, !frames.isEmpty {
      try await connection.publish(frames)
    } else if !frames.isEmpty {
      try await connection.settle(frames, settlements)
    }
    return value
  }

  /// Ends all subscriptions, and disconnects when the server has done what was sent before, at most 5 seconds later.
  ///
  /// The messages that wait for an acknowledgement go back without counting an attempt.
  public func close() async { await connection.close() }
}

/// Numbers that a client uses once.
final class STOMPNumbers: Sendable {
  private let last = Mutex<UInt64>(0)

  func next() -> UInt64 {
    last.withLock { last in
      last += 1
      return last
    }
  }
}
