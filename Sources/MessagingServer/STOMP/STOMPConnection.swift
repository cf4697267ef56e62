internal import AccessControl
internal import ApplicationStore
internal import Foundation
internal import MessagingQueue
internal import NIOCore
internal import Realtime

/// One connection of STOMP: does what its ``STOMPSession`` says, on its event loop.
final class STOMPConnection: ClientSession {
  /// What a connection has once it is known who connects.
  struct Established {
    let home: OpenHome
    let application: DirectoryEntry
    let principal: Principal
    let handle: SessionHandle<STOMPConnection>
    let feed: LiveFeed
    let worker: STOMPWorker
    /// The queues, by the numbers of their subscriptions.
    var queues: [Int: LeaseService.ID] = [:]
    var credit: STOMPCredit
  }

  /// The most bytes that are taken before a look at what waits.
  private static let pieceByteCount = 4 << 10

  private let service: STOMPService
  /// Nil over a stream, and for a WebSocket whose path names no application.
  private let handshake: STOMPHandshake?
  private var transport: (any ClientTransport)?
  private var session: STOMPSession
  private var established: Established?
  /// What was read and cannot be taken yet.
  private var input = ByteBuffer()
  private var isReading = true
  /// Whether something was refused that the client has asked for.
  private var isRefused = false
  private var timer: (deadline: UInt64, scheduled: Scheduled<Void>)?
  /// For logs.
  private var application: ApplicationID?
  private let number: UInt64
  private let start = NIODeadline.now()
  private var receivedByteCount = 0
  private var sentByteCount = 0
  private var status = 200

  init(_ service: STOMPService, _ handshake: STOMPHandshake?) {
    self.service = service
    self.handshake = handshake
    number = service.operations.nextConnectionNumber()
    session = STOMPSession(
      service.limits, atNanoseconds: NIODeadline.now().uptimeNanoseconds)
  }

  func begin(_ transport: any ClientTransport) {
    self.transport = transport
    setTimer()
  }

  // MARK: - Events

  func receive(_ bytes: ByteBuffer) {
    receivedByteCount += bytes.readableBytes
    input.writeImmutableBuffer(bytes)
    takeInput()
  }

  /// Takes what was read, unless too much waits: a short frame takes many times its bytes.
  private func takeInput() {
    while transport != nil, !isFull,
      let piece = input.readSlice(length: min(Self.pieceByteCount, input.readableBytes)),
      piece.readableBytes > 0
    {
      perform {
        $0.receive(
          Array(piece.readableBytesView), atNanoseconds: NIODeadline.now().uptimeNanoseconds)
      }
    }
    if input.readableBytes == 0 { input = ByteBuffer() }
    transport?.memory?.hold(
      input.storageCapacity + session.byteCount + (established?.worker.byteCount ?? 0), .session)
    guard isFull == isReading else { return }
    isReading = !isFull
    transport?.setReading(isReading)
  }

  /// Whether too much waits, or it is being found out who connects.
  private var isFull: Bool { established?.worker.isFull ?? session.isAuthenticating }

  private func deliver(_ events: [LiveEvent]) {
    for event in events { perform { $0.deliver(event.message) } }
  }

  private func deliver(_ deliveries: [Delivery], of number: Int) {
    perform { $0.deliver(deliveries, of: number) }
  }

  /// Reports operations that are on the disk.
  func didPerform(_ job: STOMPWorker.Job) {
    for receipt in job.receipts { send(Self.receipt(receipt)) }
    perform { $0.didPerform(job.operations) }
    takeInput()
  }

  /// Begins with the messages of a queue.
  func didOpen(_ number: Int, _ channel: MessagingQueue.Channel, _ consumer: Consumer) {
    guard let established, let subscription = session.subscription(number) else { return }
    let (handle, leases) = (established.handle, established.home.leases)
    self.established?.credit.open(number, prefetchCount: subscription.prefetchCount)
    self.established?.queues[number] = leases.add(channel, consumer, credit: 0) { deliveries in
      handle.tell { connection in
        if connection.established == nil {
          // The connection ended while they were on their way.
          Task { await leases.release(deliveries.map(\.token), countsAttempt: false) }
        } else {
          connection.deliver(deliveries, of: number)
        }
      }
    }
    lease(for: number)
  }

  /// Leases what a subscription can take, unless the client has not read what was sent before.
  private func lease(for subscription: Int) {
    guard transport?.isIdle == true, let queue = established?.queues[subscription],
      let count = established?.credit.take(subscription), count > 0
    else { return }
    established?.home.leases.add(credit: count, to: queue)
  }

  func clientHasRead() {
    for subscription in established?.queues.keys.map(\.self) ?? [] { lease(for: subscription) }
  }

  func clientIsSlow() { end(.slow) }
  func clientHoldsTooMuch() { end(.outOfMemory) }
  func clientIsSilent() { end(.silent) }
  func serverStops() { end(.stopping) }

  func end() {
    let isLost = transport != nil
    transport = nil
    forget(isLost: isLost && !session.hasEnded)
    timer?.scheduled.cancel()
    service.operations.didEnd(
      RequestRecord(
        route: .stompConnection, method: "other", application: application, status: status,
        receivedByteCount: receivedByteCount, sentByteCount: sentByteCount,
        time: Duration(.now() - start), connection: number))
  }

  /// Decides again after changes of access.
  func recheck(_ changes: Set<AccessChange>) {
    guard let established else { return }
    let (home, application) = (established.home, established.application)
    guard home.directory.application(application.id) != nil else {
      return end(.forbidden("there is no such application"))
    }
    let now = home.now()
    perform { session in
      session.recheck { subscription in
        let isConcerned =
          subscription.end.map { $0 <= now } ?? false
          || changes.contains { $0.concerns(established.principal, in: application.id) }
        guard isConcerned else { return nil }
        return established.decide(subscription.destination, now)
      }
    }
    established.handle.nextEnd = session.nextEnd
  }

  // MARK: - Actions

  /// Lets the session take something, and does what it says.
  private func perform(_ body: (inout STOMPSession) -> [STOMPSession.Action]) {
    let wasRefused = isRefused
    for action in body(&session) {
      // Frames that came together with a refused one are behind it, as those that come later are.
      if isRefused == wasRefused { perform(action) } else { drop(action) }
    }
    setTimer()
  }

  /// Gives back the leases of what is not done.
  private func drop(_ action: STOMPSession.Action) {
    switch action {
    case .perform(let operations, _): release(operations.flatMap(\.tokens))
    case .unsubscribe, .giveBack: perform(action)
    default: break
    }
  }

  /// Gives leases back whose messages the client has seen.
  private func release(_ tokens: [LeaseToken]) {
    established?.worker.append(.release(tokens, countsAttempt: true))
  }

  /// Ends the connection, behind what came before.
  private func refuse(_ ending: STOMPEnding) {
    perform { $0.refused(ending) }
    isRefused = true
  }

  private func perform(_ action: STOMPSession.Action) {
    switch action {
    case .send(let frame): send(frame)
    case .sendLeased(let frame, let delivery, let subscription):
      let bytes = frame.encoded(session.version)
      sentByteCount += bytes.count
      noteSent()
      transport?.send(bytes) { [weak self] in
        self?.established?.credit.didSend(of: subscription)
        self?.perform { $0.didSend(delivery, of: subscription) }
        self?.lease(for: subscription)
      }
    case .authenticate(let connecting): authenticate(connecting)
    case .subscribe(let subscription, let receipt): subscribe(subscription, receipt)
    case .unsubscribe(let subscription, let tokens): unsubscribe(subscription, tokens)
    case .authorize(let publication, let receipt):
      do throws(STOMPEnding) {
        _ = try message(publication)
      } catch {
        refuse(error.of(receipt))
      }
    case .perform(let operations, let receipt): perform(operations, receipt)
    case .giveBack(let tokens):
      established?.worker.append(.release(tokens, countsAttempt: false))
    case .credit(let count, let subscription):
      established?.credit.didSettle(count, of: subscription)
      lease(for: subscription)
    case .receipt(let id): inOrder { $0.send(Self.receipt(id)) }
    case .close: inOrder { $0.close() }
    case .fail(let ending): inOrder { $0.end(ending) }
    case .end(let ending): end(ending)
    }
  }

  /// Does something behind all operations that wait.
  private func inOrder(_ body: @escaping @Sendable (STOMPConnection) -> Void) {
    guard let established else { return body(self) }
    established.worker.append(.tell(body))
  }

  /// Finds out who connects, on which a key derivation can take its time.
  private func authenticate(_ connecting: STOMPConnecting) {
    guard let transport else { return }
    guard let home = service.gate.home else {
      let ending = service.gate.isCutOff ? STOMPEnding.cutOff : .sealed
      return perform { $0.refused(ending) }
    }
    let (eventLoop, isProtected, source) = (
      transport.eventLoop, transport.isProtected, transport.source
    )
    let me = NIOLoopBound(self, eventLoop: eventLoop)
    let handshake = handshake
    Task(executorPreference: EventLoopExecutor(eventLoop)) {
      let client: Result<STOMPClientIdentity, STOMPEnding>
      do throws(STOMPEnding) {
        client = .success(
          try await home.authenticate(
            connecting, handshake, isProtected: isProtected, from: source))
      } catch {
        client = .failure(error)
      }
      eventLoop.execute { me.value.didAuthenticate(client, home) }
    }
  }

  private func didAuthenticate(
    _ client: Result<STOMPClientIdentity, STOMPEnding>, _ home: OpenHome
  ) {
    // It can have ended before.
    guard let transport, session.isAuthenticating else { return }
    do throws(STOMPEnding) {
      let (application, principal) = try client.get()
      // Otherwise a stranger could hold memory before the first decision.
      guard home.directory.hasRight(principal, in: application.id, at: home.now()) else {
        throw .forbidden("nothing gives this client a right in the application")
      }
      let handle = SessionHandle(self, application: application.id, on: transport.eventLoop)
      guard home.stompSessions.add(handle) else { throw .sealed }
      let feed = LiveFeed(home.realtime) { events in handle.tell { $0.deliver(events) } }
      self.application = application.id
      established = Established(
        home: home, application: application, principal: principal, handle: handle, feed: feed,
        worker: STOMPWorker(
          home, application, handle, EventLoopExecutor(transport.eventLoop)),
        credit: STOMPCredit(unreadCount: service.limits.unreadCount))
      let name = "\(application.record.name)-\(UInt64.random(in: 0...UInt64.max))"
      perform { $0.connected(name, atNanoseconds: NIODeadline.now().uptimeNanoseconds) }
    } catch {
      perform { $0.refused(error) }
    }
    takeInput()
  }

  private func subscribe(_ subscription: STOMPSubscription, _ receipt: String?) {
    guard let established else { return }
    guard !service.gate.isCutOff else { return refuse(.cutOff.of(receipt)) }
    let now = established.home.now()
    var (decision, ending) = established.decide(subscription.destination, now)
    guard decision.isAllowed,
      let channel = try? established.application.channel(subscription.destination.channel)
    else {
      ending.receipt = receipt
      return refuse(ending)
    }
    session.allow(subscription.number, until: decision.end)
    established.handle.nextEnd = session.nextEnd
    switch subscription.destination {
    case .topic: established.feed.add(channel)
    case .queue(let name, let consumer):
      let canAdd = established.decide(.addConsumer, name, consumer, now).isAllowed
      established.worker.append(
        .open(
          subscription.number, channel, consumer, canAdd: canAdd, receipt: receipt))
    }
  }

  private func unsubscribe(_ subscription: STOMPSubscription, _ tokens: [LeaseToken]) {
    guard let established else { return }
    switch subscription.destination {
    case .topic(let name):
      if !session.hasTopic(name), let channel = try? established.application.channel(name) {
        established.feed.remove(channel)
      }
    case .queue:
      if let queue = self.established?.queues.removeValue(forKey: subscription.number) {
        established.home.leases.remove(queue)
        self.established?.credit.close(subscription.number)
      }
      if !tokens.isEmpty { established.worker.append(.release(tokens, countsAttempt: false)) }
    }
  }

  private func perform(_ operations: [STOMPOperation], _ receipt: String?) {
    do throws(STOMPEnding) {
      var messages: [Message] = []
      for case .publish(let publication) in operations {
        messages.append(try message(publication))
      }
      established?.worker.append(
        .job(STOMPWorker.Job(operations, messages, receipt: receipt)))
    } catch {
      release(operations.flatMap(\.tokens))
      refuse(error.of(receipt))
    }
  }

  /// The engine's message of a publication.
  ///
  /// - Throws: ``STOMPEnding`` if it is refused.
  private func message(_ publication: STOMPPublication) throws(STOMPEnding) -> Message {
    guard let established else { throw .failed }
    guard !service.gate.isCutOff else { throw .cutOff }
    let decision = established.home.directory.decide(
      established.principal, .publish,
      Resource(.channel(publication.channel), of: established.application.id),
      at: established.home.now())
    guard decision.isAllowed,
      let channel = try? established.application.channel(publication.channel)
    else {
      throw .forbidden(decision.ground(of: .publish, on: .channel(publication.channel)))
    }
    return publication.message(in: channel)
  }

  // MARK: - Time

  private func setTimer() {
    guard let transport, let deadline = session.nextDeadlineNanoseconds else { return }
    if let timer, timer.deadline <= deadline { return }
    timer?.scheduled.cancel()
    let me = NIOLoopBound(self, eventLoop: transport.eventLoop)
    let scheduled = transport.eventLoop.scheduleTask(
      deadline: .uptimeNanoseconds(deadline)
    ) { me.value.timePassed() }
    timer = (deadline, scheduled)
  }

  private func timePassed() {
    timer = nil
    let now = NIODeadline.now().uptimeNanoseconds
    if established != nil, session.needsHeartBeat(atNanoseconds: now) {
      transport?.send([.lineFeed])
      noteSent()
    }
    perform { $0.timePassed(atNanoseconds: now) }
  }

  private func noteSent() {
    session.didSend(atNanoseconds: NIODeadline.now().uptimeNanoseconds)
  }

  // MARK: - Sending

  private static func receipt(_ id: String) -> STOMPFrame {
    STOMPFrame("RECEIPT", [("receipt-id", id)])
  }

  private func send(_ frame: STOMPFrame) {
    let bytes = frame.encoded(session.version)
    sentByteCount += bytes.count
    noteSent()
    transport?.send(bytes)
  }

  /// Tells the client why, and closes.
  func end(_ ending: STOMPEnding) {
    guard let transport else { return }
    // What a slow client no longer gets must not end it again.
    self.transport = nil
    status = ending.status
    forget(isLost: true)
    let bytes = ending.frame.encoded(session.version)
    sentByteCount += bytes.count
    transport.send(bytes)
    transport.close(1000, "")
  }

  /// Closes a connection whose client has disconnected.
  private func close() {
    guard let transport else { return }
    self.transport = nil
    forget(isLost: false)
    transport.close(1000, "")
  }

  /// Leaves everything, and gives leases back behind the operations that wait.
  ///
  /// - Parameter isLost: whether the client did not leave by itself: what it held then counts as attempts, so that a
  ///   message that ends its workers becomes a dead letter in the end.
  private func forget(isLost: Bool) {
    guard let established else { return }
    self.established = nil
    established.feed.end()
    for queue in established.queues.values { established.home.leases.remove(queue) }
    established.home.stompSessions.remove(established.handle)
    let tokens = session.tokens
    if !tokens.isEmpty { established.worker.append(.release(tokens, countsAttempt: isLost)) }
    session.dropTransactions()
    input = ByteBuffer()
  }
}
