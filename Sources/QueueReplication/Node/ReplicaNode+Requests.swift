internal import Logging
internal import MessagingQueue
internal import Replication
internal import Synchronization

/// What a node asks the owner, and what the owner replies: sealed, through the brokers.
extension ReplicaNode {
  /// How often a node asks for settlements, which can be repeated.
  private static var mostTries: Int { 3 }

  // MARK: Asking

  func requestLeases(
    from channel: Channel, for consumer: Consumer, most: Int, _ lease: Duration
  ) async throws(EngineError) -> [LeasedMessage] {
    // A reply that is lost leaves the messages leased to no worker, until their leases end.
    let reply = await ask(
      .receive(
        channel: channel.name, consumer: consumer.name, mostMessages: UInt32(clamping: most),
        leaseMilliseconds: lease.wholeMilliseconds))
    if case .leased(let messages) = reply { return messages }
    return []
  }

  func requestSettlements(
    _ settlements: [LeaseSettlement]
  ) async throws(EngineError) -> [SettlementResult] {
    for _ in 0..<Self.mostTries {
      let epoch = state.withLock { $0.view.values.epoch?.epoch }
      switch await ask(.settle(settlements)) {
      case .settled(let results): return results
      case .notOwner: try await waitForEnd(of: epoch)
      case .refused: try? await Task.sleep(for: configuration.ownership.heartbeatInterval)
      default: try requireRunning()
      }
    }
    var results: [SettlementResult] = []
    for settlement in settlements {
      results.append(try await hasCounted(settlement) ? .done : .unknown)
    }
    return results
  }

  /// Waits until this node has read that an epoch has ended, whose owner is no owner any more.
  ///
  /// Before that, a settlement of the epoch that is not in the log yet can still count.
  private func waitForEnd(of epoch: EpochID?) async throws(EngineError) {
    let end = now + configuration.requestPatience
    while state.withLock({ $0.view.values.epoch?.epoch }) == epoch, now < end, !Task.isCancelled {
      try requireRunning()
      try? await Task.sleep(for: .milliseconds(20))
    }
  }

  func requestExtensions(
    _ leases: [LeaseID], by lease: Duration
  ) async throws(EngineError) -> [Bool] {
    if case .extended(let kept) = await ask(
      .extend(leases, leaseMilliseconds: lease.wholeMilliseconds))
    {
      return kept
    }
    throw Self.notExtended
  }

  /// Asks the owner that the log names here.
  ///
  /// - Returns: nil if there is none, or no reply comes.
  private func ask(_ body: Request.Body) async -> Reply? {
    guard let exchange,
      let (epoch, beat, key) = state.withLock({ state in
        state.view.values.epoch.map { ($0, state.beat, state.view.values.key) }
      })
    else { return nil }
    let request = Request(epoch: epoch.epoch, beat: beat, body)
    var random = SystemRandomNumberGenerator()
    let id = RequestID(using: &random)
    do {
      let seal = exchange.seal
      let sealed = try seal.seal(request, id: id, to: epoch.owner, under: key)
      let reply = try await exchange.members.request(
        sealed, to: epoch.owner, within: configuration.requestPatience
      ) { bytes in
        (try? seal.openReply(bytes, to: id, from: epoch.owner))?.answers(request) == true
      }
      return try seal.openReply(reply, to: id, from: epoch.owner)
    } catch {
      configuration.logger.debug("the owner of the leases has not replied: \(error)")
      return nil
    }
  }

  // MARK: Answering

  /// Answers the requests of other members from now on.
  func serveRequests() throws {
    guard let exchange else { return }
    try exchange.members.serve(as: database.member) {
      [weak self, seal = exchange.seal] bytes, reply in
      guard let self, let received = try? seal.openRequest(bytes) else { return }
      Task {
        let answer = await self.answer(received)
        let key = self.state.withLock { $0.view.values.key }
        if let sealed = try? seal.seal(answer, to: received, under: key) {
          reply(sealed)
        }
      }
    }
  }

  private func answer(_ received: RequestSeal.Received) async -> Reply {
    let request = received.request
    let decision = state.withLock { state -> RequestWindow.Decision in
      guard state.ownership.epoch == request.epoch else { return .otherEpoch }
      return state.window?.admit(received.id, request) ?? .otherEpoch
    }
    switch decision {
    case .admitted: break
    case .otherEpoch: return .notOwner(state.withLock { $0.view.values.epoch?.owner })
    case .late, .repeated: return .refused(reason: "the request is not new")
    case .unknownBeat: return .refused(reason: "the request names a heartbeat that was not written")
    case .full: return .refused(reason: "too many requests")
    }
    do {
      return try await answer(request)
    } catch {
      return .refused(reason: error.message)
    }
  }

  private func answer(_ request: Request) async throws(EngineError) -> Reply {
    switch request.body {
    case .receive(let channel, let consumer, let most, let milliseconds):
      let longest = configuration.ownership.longestLease
      return .leased(
        try await leaseHere(
          from: try Channel(channel), for: try Consumer(consumer), most: Int(most),
          until: min(.milliseconds(Int64(clamping: milliseconds)), longest)))
    case .settle(let settlements):
      return .settled(try await settle(settlements, in: request.epoch))
    case .extend(let leases, let milliseconds):
      return .extended(try extendHere(leases, by: .milliseconds(Int64(clamping: milliseconds))))
    }
  }
}

/// How a node asks other members.
struct RequestExchange: Sendable {
  let members: any MemberExchange
  let seal: SharedRequestSeal
}

/// The seal of requests, one call at a time.
final class SharedRequestSeal: Sendable {
  private let seal: Mutex<RequestSeal>

  init(_ seal: sending RequestSeal) { self.seal = Mutex(seal) }

  func seal(
    _ request: Request, id: RequestID, to owner: MemberID, under key: UInt32
  ) throws -> [UInt8] {
    try seal.withLock { try $0.seal(request, id: id, to: owner, under: key) }
  }

  func seal(_ reply: Reply, to request: RequestSeal.Received, under key: UInt32) throws -> [UInt8] {
    try seal.withLock { try $0.seal(reply, to: request, under: key) }
  }

  func openRequest(_ bytes: [UInt8]) throws -> RequestSeal.Received {
    try seal.withLock { try $0.openRequest(bytes) }
  }

  func openReply(_ bytes: [UInt8], to id: RequestID, from owner: MemberID) throws -> Reply {
    try seal.withLock { try $0.openReply(bytes, to: id, from: owner) }
  }
}
