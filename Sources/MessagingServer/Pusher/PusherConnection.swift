internal import AccessControl
internal import ApplicationStore
internal import Foundation
internal import MessagingQueue
internal import NIOCore
internal import Realtime

/// One connection of Pusher's protocol: does what its ``PusherSession`` says, on its event loop.
final class PusherConnection: ClientSession {
  /// What a connection has while it is established.
  private struct Established {
    let home: OpenHome
    let application: DirectoryEntry
    /// Who has logged in at the handshake; else anonymous.
    let client: Principal
    let handle: PusherHub.Handle
    let feed: LiveFeed
    var session: PusherSession

    mutating func take(
      _ body: (inout PusherSession) -> [PusherSession.Action]
    ) -> [PusherSession.Action] {
      body(&session)
    }
  }

  /// How often a connection looks for an unlock.
  private static let lookTime = Duration.milliseconds(500)

  private let service: PusherService
  private let request: PusherConnecting
  private let login: HandshakeLogin
  private var transport: (any ClientTransport)?
  private var established: Established?

  init(
    _ request: PusherConnecting, _ login: HandshakeLogin, _ service: PusherService
  ) {
    self.request = request
    self.login = login
    self.service = service
  }

  func begin(_ transport: any ClientTransport) {
    self.transport = transport
    do throws(PusherEnding) {
      try request.checkVersion()
      try enter(remainingTime: service.sealedTime)
    } catch {
      end(error)
    }
  }

  /// Establishes the connection; while the vault is locked, it waits for a time.
  ///
  /// Clients that are refused come again after a second: the wait keeps many of them from filling the server with
  /// handshakes, and serves those that are there after an unlock.
  private func enter(remainingTime: Duration) throws(PusherEnding) {
    guard let transport else { return }
    guard let home = service.gate.home else {
      // A handshake with credentials has waited.
      guard remainingTime > .zero, case .anonymous = login else {
        throw service.gate.isCutOff ? .cutOff : .sealed
      }
      let me = NIOLoopBound(self, eventLoop: transport.eventLoop)
      transport.eventLoop.scheduleTask(in: TimeAmount(Self.lookTime)) {
        me.value.look(remainingTime - Self.lookTime)
      }
      return
    }
    guard let application = home.directory.application(subscribeKey: request.key) else {
      throw .unknownApplication
    }
    let client: Principal =
      switch login {
      case .anonymous: .anonymous
      case .principal(let principal): principal
      case .sealed: throw .sealed
      }
    try establish(home, application, client, transport.eventLoop)
  }

  private func look(_ remainingTime: Duration) {
    do throws(PusherEnding) {
      try enter(remainingTime: remainingTime)
    } catch {
      end(error)
    }
  }

  private func establish(
    _ home: OpenHome, _ application: DirectoryEntry, _ client: Principal,
    _ eventLoop: any EventLoop
  ) throws(PusherEnding) {
    let socketID = service.makeSocketID()
    let handle = PusherHub.Handle(self, application: application.id, on: eventLoop)
    let feed = LiveFeed(home.realtime) { events in handle.tell { $0.deliver(events) } }
    guard home.pusherSessions.add(handle) else { throw .sealed }
    established = Established(
      home: home, application: application, client: client, handle: handle, feed: feed,
      session: PusherSession(socketID, service.limits))
    send(.established(socketID: socketID))
  }

  // MARK: - Events

  func receive(_ bytes: ByteBuffer) {
    perform {
      $0.receive(Array(bytes.readableBytesView), atNanoseconds: service.uptimeNanoseconds)
    }
  }

  private func deliver(_ events: [LiveEvent]) {
    for event in events {
      guard let message = established?.home.pusherBroadcast.message(of: event) else { continue }
      perform { $0.deliver(message) }
    }
  }

  func clientIsSlow() { end(.slow) }
  func clientHoldsTooMuch() { end(.outOfMemory) }
  func clientIsSilent() { end(.silent) }
  func serverStops() { end(.stopping) }

  func end() {
    forget()
    transport = nil
  }

  /// Decides again after changes of access.
  func recheck(_ changes: Set<AccessChange>) {
    guard let established else { return }
    let (home, application) = (established.home, established.application.id)
    guard home.directory.application(application) != nil else { return end(.unknownApplication) }
    let now = home.now()
    perform { session in
      session.recheck(
        { principal, end in
          end.map { $0 <= now } ?? false
            || changes.contains { $0.concerns(principal, in: application) }
        },
        { principal, channel in
          home.directory.decide(
            principal, .subscribe, Resource(.channel(channel.name), of: application), at: now)
        },
        { decision, channel in
          .forbidden(decision.ground(of: .subscribe, on: .channel(channel.name)))
        })
    }
    established.handle.nextEnd = self.established?.session.nextEnd
  }

  // MARK: - Actions

  /// Lets the session take something, and does what it says.
  private func perform(_ body: (inout PusherSession) -> [PusherSession.Action]) {
    for action in established?.take(body) ?? [] { perform(action) }
    transport?.memory?.hold(
      PusherLimits.channelByteCount * (established?.session.channelCount ?? 0), .session)
  }

  private func perform(_ action: PusherSession.Action) {
    guard let established else { return }
    let (home, handle) = (established.home, established.handle)
    switch action {
    case .send(let event): send(event)
    case .end(let ending):
      if ending == .tooManyFrames { home.operations.metrics?.count(.rate) }
      end(ending)
    case .authorize(let request): authorize(request, established)
    case .join(let channel, let member): join(channel, member, established)
    case .leave(let channel):
      if let name = try? established.application.channel(channel.name) {
        established.feed.remove(name)
      }
      home.pusher.leave(handle, channel)
    case .readCache(let channel, let number):
      guard let name = try? established.application.channel(channel.name) else { return }
      Task {
        // After an error the home closes, or the client gets the next message.
        let message = try? await home.newestMessage(of: name)
        handle.tell { $0.didReadCache(channel, number, message) }
      }
    case .relay(let event): relay(event, established)
    }
  }

  private func authorize(_ request: PusherSubscribing, _ established: Established) {
    // The client comes again later, and subscribes then: a refusal of the channel would be for good.
    if service.gate.isCutOff { return end(.cutOff) }
    do throws(PusherRefusal) {
      let (principal, end) = try established.home.authorize(
        request, by: established.client, socketID: established.session.socketID,
        of: established.application)
      perform { $0.authorized(request, principal, until: end) }
    } catch {
      perform { $0.refused(request.channel, error) }
    }
    established.handle.nextEnd = self.established?.session.nextEnd
  }

  private func join(
    _ channel: PusherChannel, _ member: PusherMember?, _ established: Established
  ) {
    do throws(PusherRefusal) {
      guard let name = try? established.application.channel(channel.name) else {
        throw .limit("the name of the channel is too long")
      }
      let roster = try established.home.pusher.join(established.handle, channel, member)
      established.feed.add(name)
      perform { $0.joined(channel, roster) }
    } catch {
      perform { $0.refused(channel, error) }
    }
  }

  private func didReadCache(_ channel: PusherChannel, _ number: Int, _ message: PusherMessage?) {
    perform { $0.didReadCache(channel, number: number, message) }
  }

  private func relay(_ event: PusherClientEvent, _ established: Established) {
    if service.gate.isCutOff { return send(.error(code: nil, message: HomeGate.cutOff)) }
    let home = established.home
    let decision = home.directory.decide(
      event.principal, .clientEvent,
      Resource(.channel(event.channel.name), of: established.application.id), at: home.now())
    guard decision.isAllowed, let channel = try? established.application.channel(event.channel.name)
    else {
      let ground = decision.ground(of: .clientEvent, on: .channel(event.channel.name))
      return send(.error(code: nil, message: ground))
    }
    let message = Message(
      channel: channel, payload: event.data,
      headers: event.notes(excluding: established.session.socketID).headers)
    guard home.signals.send(message) else {
      return send(.error(code: nil, message: "too many events wait: send it again later"))
    }
    home.webhooks.note(
      .client(
        channel: event.channel.name.text, name: event.name, data: event.data,
        socketID: established.session.socketID, userID: event.userID),
      of: established.application.id)
  }

  // MARK: - Sending

  func send(_ event: PusherEvent) { transport?.send(event.bytes) }

  /// Tells the client why, and closes.
  func end(_ ending: PusherEnding) {
    guard let transport else { return }
    forget()
    // What a slow client no longer gets must not end it again.
    self.transport = nil
    transport.send(PusherEvent.error(code: ending.code, message: ending.message).bytes)
    transport.close(ending.code, ending.message)
  }

  /// Leaves everything.
  private func forget() {
    guard let established else { return }
    self.established = nil
    established.feed.end()
    established.home.pusherSessions.remove(established.handle)
    for channel in established.session.channels {
      established.home.pusher.leave(established.handle, channel)
    }
  }
}
