/// The connection of a STOMP client: makes it, keeps it alive, and makes it again.
actor STOMPConnection {
  nonisolated let numbers = STOMPNumbers()
  private let configuration: STOMPConfiguration
  private let opener: STOMPLinkOpener
  let log: ClientLog
  private var credentials: STOMPCredentials
  private var session: STOMPSession
  var entries: [UInt64: Entry] = [:]
  private var requests: [UInt64: Request] = [:]
  /// Who waits for a connection.
  private var arrivals: [UInt64: CheckedContinuation<MessagingClientError?, Never>] = [:]
  private var run: Task<Void, Never>?
  var live: Live?
  var generation: UInt64 = 0
  private var lastHeard = ContinuousClock.now
  private var lastSent = ContinuousClock.now
  /// Resumes reading, which waits for a slow application.
  private var holder: CheckedContinuation<Void, Never>?
  private var isClosed = false

  init(
    _ configuration: STOMPConfiguration, _ credentials: STOMPCredentials,
    _ opener: STOMPLinkOpener, _ log: ClientLog
  ) {
    self.configuration = configuration
    self.credentials = credentials
    self.opener = opener
    self.log = log
    session = Self.session(configuration)
  }

  private static func session(_ configuration: STOMPConfiguration) -> STOMPSession {
    STOMPSession(
      sendsHeartBeatEvery: configuration.sendsHeartBeatEvery,
      wants: configuration.wantsHeartBeatEvery)
  }

  static let closed = MessagingClientError(.cancelled, "the client is closed")
  private static let cancelled = MessagingClientError(.cancelled, "the operation was cancelled")

  // MARK: - Requests

  /// Waits for a connection.
  ///
  /// - Throws: the error of the next attempt to make one.
  func connected() async throws(MessagingClientError) -> Live {
    guard !isClosed else { throw Self.closed }
    if let live { return live }
    if run == nil { run = Task { await work() } }
    let number = numbers.next()
    let error = await withTaskCancellationHandler {
      await withCheckedContinuation {
        (waiter: CheckedContinuation<MessagingClientError?, Never>) in
        arrivals[number] = waiter
        if Task.isCancelled { arrive(number, Self.cancelled) }
      }
    } onCancel: {
      Task { await arrive(number, Self.cancelled) }
    }
    if let error { throw error }
    // A server can end the connection that it has just accepted: to try again here would be without a wait.
    guard let live else { throw Self.lostBefore }
    return live
  }

  private static let lostBefore = MessagingClientError(
    .unavailable, "the connection was lost before the request")

  private func arrive(_ number: UInt64, _ error: MessagingClientError?) {
    arrivals.removeValue(forKey: number)?.resume(returning: error)
  }

  /// Sends frames that are one request, and waits for its receipt.
  ///
  /// - Throws: `outcomeUnknown` if no receipt came.
  func request(
    _ frames: [STOMPFrame], subscription: UInt64? = nil, on live: Live
  ) async throws(MessagingClientError) {
    guard self.live?.generation == live.generation else {
      throw Self.lostBefore
    }
    let number = numbers.next()
    let encoded = try begin(frames, number, subscription)
    let error = await withTaskCancellationHandler {
      await withCheckedContinuation { waiter in
        send(encoded, number, subscription, waiter, on: live)
      }
    } onCancel: {
      Task { await end(number, Self.cancelled) }
    }
    if let error { throw error }
  }

  private func begin(
    _ frames: [STOMPFrame], _ number: UInt64, _ subscription: UInt64?
  ) throws(MessagingClientError) -> [EncodedSTOMPFrame] {
    let named = session.begin(frames, number, isSubscription: subscription != nil)
    do throws(MessagingClientError) {
      var encoded: [EncodedSTOMPFrame] = []
      for frame in named { encoded.append(try frame.encoded()) }
      return encoded
    } catch {
      session.forget(number)
      throw error
    }
  }

  private func send(
    _ frames: [EncodedSTOMPFrame], _ number: UInt64, _ subscription: UInt64?,
    _ waiter: CheckedContinuation<MessagingClientError?, Never>?, on live: Live
  ) {
    let timeout = Task { [answerTime = configuration.answerTime] in
      guard (try? await Task.sleep(for: answerTime)) != nil else { return }
      // A subscription that is made again has no caller who learns of it: it is made again on another connection.
      if waiter == nil { live.link.drop() }
      end(
        number, MessagingClientError(.outcomeUnknown, "the server gave no receipt in time"))
    }
    requests[number] = Request(subscription: subscription, waiter: waiter, timeout: timeout)
    for frame in frames { send(frame, on: live.link) }
    // The receipt is behind what the application has not taken.
    readOn()
  }

  private func send(_ frame: EncodedSTOMPFrame, on link: any STOMPLink) {
    lastSent = .now
    log.sends(frame: frame.kind, byteCount: frame.byteCount)
    link.send(frame)
  }

  /// Ends a request: with its receipt, or with an error.
  private func end(_ number: UInt64, _ error: MessagingClientError?) {
    guard let request = requests.removeValue(forKey: number) else { return }
    request.timeout.cancel()
    session.forget(number)
    if error == nil, let subscription = request.subscription {
      if let feed = entries[subscription]?.feed { log.subscribed(to: feed.destination) }
      entries[subscription]?.isConfirmed = true
      entries[subscription]?.feed.put(.subscribed)
    }
    request.waiter?.resume(returning: error)
  }

  /// Publishes, and repeats what has no known outcome if the server knows the ids of publications.
  ///
  /// - Parameter frames: SEND, alone or within a transaction without acknowledgements.
  func publish(_ frames: [STOMPFrame]) async throws(MessagingClientError) {
    var repetition = STOMPRepetition(at: .now)
    while true {
      if let wait = repetition.wait(configuration.backoff) {
        guard (try? await Task.sleep(for: wait)) != nil else { throw Self.cancelled }
      }
      let live: Live
      do throws(MessagingClientError) {
        live = try await connected()
      } catch {
        try repetition.failed(error)
        continue
      }
      let id = try repetition.id(live.server.deduplicationWindow, at: .now)
      do throws(MessagingClientError) {
        return try await request(frames.identified(id), on: live)
      } catch {
        if error.code == .outcomeUnknown { log.outcomeUnknown() }
        try repetition.failed(error)
      }
    }
  }

  // MARK: - Connections

  /// A connection that lived so long does not count as a failure.
  private static let stableTime = Duration.seconds(10)

  private func work() async {
    var failureCount = 0
    while !isClosed {
      let end = await connect()
      lose(end.ending)
      if isClosed { break }
      if end.hasOtherCredentials { continue }
      if end.isFinal {
        log.givesUp(end.ending.error)
        for number in Array(entries.keys) { endSubscription(number, end.ending.error) }
      }
      for number in Array(arrivals.keys) { arrive(number, end.ending.error) }
      if entries.isEmpty {
        if !end.isFinal { log.disconnected(end.ending.error) }
        break
      }
      let isStable = end.lifetime.map { $0 > Self.stableTime } ?? false
      failureCount = isStable || end.ending.request != nil ? 1 : failureCount + 1
      log.fails(end.ending.error, failureCount: failureCount)
      var generator = SystemRandomNumberGenerator()
      let wait = configuration.backoff.wait(afterFailures: failureCount, &generator)
      log.waits(wait, failureCount: failureCount)
      try? await Task.sleep(for: wait)
    }
    run = nil
  }

  /// Makes a connection, and serves it until it ends.
  private func connect() async -> End {
    let link: any STOMPLink
    let frame: EncodedSTOMPFrame
    session = Self.session(configuration)
    do throws(MessagingClientError) {
      // Before the connection is made: a server does not wait for a user.
      var asked = credentials
      defer { credentials = asked }
      let headers = try await asked.headers()
      frame = try session.connectFrame(host: configuration.application).encoded(secrets: headers)
      link = try await opener.open()
    } catch {
      let passes = [.cannotConnect, .outcomeUnknown, .unavailable, .busy].contains(error.code)
      return End(ending: STOMPEnding(error: error), isFinal: !passes)
    }
    defer { link.drop() }
    if isClosed { return End(ending: STOMPEnding(error: Self.closed)) }
    send(frame, on: link)
    let answerTime = configuration.answerTime
    var watcher = Task {
      if (try? await Task.sleep(for: answerTime)) != nil { link.drop() }
    }
    defer { watcher.cancel() }
    var start: ContinuousClock.Instant?
    var count = 0
    while let event = await link.next() {
      count += 1
      // Bytes that wait come without a suspension: a flood would keep `close()` and all others from the actor.
      if count.isMultiple(of: 32) { await Task.yield() }
      lastHeard = .now
      switch event {
      case .lost(let error):
        return End(
          ending: STOMPEnding(error: error), lifetime: start.map { .now - $0 },
          isFinal: error.code == .untrustedServer)
      case .bytes(let bytes):
        for event in session.receive(bytes) {
          log.receives(frame: event.kind, byteCount: event.byteCount)
          switch event {
          case .connected(let server):
            start = .now
            watcher.cancel()
            watcher = Task { await watch(link, server.heartBeat) }
            begin(link, server)
          case .ended(let ending):
            if ending.error.code != .invalidAnswer { log.serverEnds(code: ending.error.status) }
            return end(ending, lifetime: start.map { .now - $0 })
          case .receipt(let number): end(number, nil)
          case .message(let frame, let subscription): deliver(frame, to: subscription)
          }
        }
        await hold()
      }
    }
    return End(ending: STOMPEnding(error: Self.cancelled))
  }

  private func end(_ ending: STOMPEnding, lifetime: Duration?) -> End {
    guard lifetime == nil else { return End(ending: ending, lifetime: lifetime) }
    if ending.error.code == .unauthenticated {
      log.refusedCredentials()
      if credentials.refused() { return End(ending: ending, hasOtherCredentials: true) }
    }
    return End(ending: ending, isFinal: ending.error.code != .busy)
  }

  /// The server has accepted the connection.
  private func begin(_ link: any STOMPLink, _ server: STOMPServer) {
    credentials.accepted()
    log.connected()
    generation += 1
    let live = Live(link: link, server: server, generation: generation)
    self.live = live
    for (number, entry) in entries.sorted(by: { $0.key < $1.key }) where entry.isConfirmed {
      entries[number]?.unsettled = STOMPUnsettled()
      entries[number]?.generation = generation
      let request = numbers.next()
      guard let frames = try? begin([entry.feed.subscribeFrame], request, number) else { continue }
      send(frames, request, number, nil, on: live)
    }
    for number in Array(arrivals.keys) { arrive(number, nil) }
  }

  /// The connection is lost: ends all requests.
  private func lose(_ ending: STOMPEnding) {
    live = nil
    for (number, request) in requests.sorted(by: { $0.key < $1.key }) {
      if number == ending.request {
        if let subscription = request.subscription { endSubscription(subscription, ending.error) }
        end(number, ending.error)
      } else if request.subscription != nil {
        end(number, ending.error)
      } else {
        end(
          number,
          MessagingClientError(
            .outcomeUnknown, "the connection was lost before the receipt: \(ending.error.message)",
            status: ending.error.status))
      }
    }
    if isClosed { return }
    let status: STOMPEvent.Status = ending.error.code == .busy ? .waiting : .disconnected
    for entry in entries.values where entry.isConfirmed { entry.feed.lost(generation, status) }
  }

  // MARK: - Time

  /// Sends heart-beats, and drops a connection whose server is silent.
  private func watch(_ link: any STOMPLink, _ heartBeat: STOMPHeartBeat) async {
    guard let interval = heartBeat.interval else { return }
    while (try? await Task.sleep(for: interval)) != nil {
      let now = ContinuousClock.now
      if heartBeat.needsHeartBeat(afterSilence: now - lastSent) {
        send(.heartBeat, on: link)
      }
      // What the server sends is not read while the application is behind.
      if holder == nil, heartBeat.isLost(afterSilence: now - lastHeard) { return link.drop() }
    }
  }

  /// Waits for a slow application, unless a request waits for what the server sends.
  private func hold() async {
    while !isClosed, requests.isEmpty, entries.values.contains(where: \.feed.isFull) {
      await withCheckedContinuation { holder = $0 }
      lastHeard = .now
    }
  }

  /// Reads on: the application has taken messages, or waits for a receipt.
  func readOn() {
    holder?.resume()
    holder = nil
  }

  // MARK: - The end

  /// How long the server can take to answer DISCONNECT.
  private static let closeTime = Duration.seconds(5)

  func close() async {
    guard !isClosed else { return }
    isClosed = true
    for number in Array(arrivals.keys) { arrive(number, Self.closed) }
    if let live {
      let closing = Task {
        try? await request([STOMPFrame("DISCONNECT")], on: live)
      }
      let timeout = Task {
        if (try? await Task.sleep(for: Self.closeTime)) != nil { closing.cancel() }
      }
      await closing.value
      timeout.cancel()
      live.link.drop()
      log.disconnected()
    }
    run?.cancel()
    live = nil
    readOn()
    lose(STOMPEnding(error: Self.closed))
    for number in Array(entries.keys) { entries.removeValue(forKey: number)?.feed.end(nil) }
  }
}
