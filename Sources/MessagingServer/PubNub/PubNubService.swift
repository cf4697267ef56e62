internal import AccessControl
internal import ApplicationStore
internal import Foundation
internal import MessagingQueue
internal import Realtime
internal import StrictJSON

/// Answers PubNub's API: it translates each call into one of the operations that all protocols share.
struct PubNubService: Sendable {
  /// The largest message, in bytes of JSON; PubNub's limit.
  static let maximumPayloadByteCount = 32_768
  /// The largest signal, in bytes of JSON; PubNub's limit.
  static let maximumSignalByteCount = 64
  /// How long a subscriber waits for events at most; the SDKs wait 310 seconds.
  static let holdTime = Duration.seconds(280)

  let gate: HomeGate
  let operations: ServerOperations
  let holdTime: Duration
  let now: @Sendable () -> Date

  init(
    _ gate: HomeGate, _ operations: ServerOperations,
    holdTime: Duration = PubNubService.holdTime,
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    self.gate = gate
    self.operations = operations
    self.holdTime = holdTime
    self.now = now
  }

  /// Answers a request now or later.
  func answer(_ exchange: HTTPExchange) {
    if exchange.request.method == "OPTIONS" {
      exchange.describe(.preflight)
      return exchange.answer(.preflight)
    }
    do throws(PubNubRefusal) {
      let request = try Self.parse(exchange.request)
      guard let request else { return exchange.answer(.notFound) }
      exchange.describe(request.call.route)
      if case .time = request.call { return exchange.answer(.time(place)) }
      if case .unavailable(let feature) = request.call {
        return exchange.answer(.unavailable(feature))
      }
      guard let home = gate.home else { return answerSealed(request, exchange) }
      let application = try application(of: request, exchange, home)
      guard !request.hasOwnCredentials,
        let authorization = home.authorization(of: exchange.request, to: application)
      else {
        return try answer(PubNubExchange(request, exchange, home, self, application))
      }
      Task {
        let result = await home.login(
          authorization, to: application, from: exchange.request.source, userID: request.userID,
          isProtected: exchange.request.isProtected)
        answer(result, request, exchange, home, application)
      }
    } catch {
      exchange.answer(error.response(at: place))
    }
  }

  private func application(
    of request: PubNubRequest, _ exchange: HTTPExchange, _ home: OpenHome
  ) throws(PubNubRefusal) -> DirectoryEntry {
    guard let application = home.directory.application(subscribeKey: request.subscribeKey) else {
      throw PubNubRefusal(
        request.family, 400, request.family == .publish ? "Invalid Key" : "Invalid Subscribe Key")
    }
    exchange.describe(application.id)
    return application
  }

  /// Goes on with whom the credentials name, or refuses them.
  private func answer(
    _ result: LoginResult, _ request: PubNubRequest, _ exchange: HTTPExchange, _ home: OpenHome,
    _ application: DirectoryEntry
  ) {
    do throws(PubNubRefusal) {
      let challenges = home.challenges(ofCredentialsFor: application)
      switch result {
      case .principal(let principal):
        try answer(
          PubNubExchange(
            request, exchange, home, self, application, login: principal, challenges))
      case .wrong: exchange.answer(.unauthorized(challenges))
      case .unprotected: exchange.answer(HTTPResponse(.unprotectedLogin))
      case .wait(let seconds):
        var response = PubNubRefusal(request.family, 429, "Too many attempts to log in")
          .response(at: place)
        response.retryAfter = seconds
        exchange.answer(response)
      case .busy: throw PubNubRefusal(request.family, 503, "Try again later")
      }
    } catch {
      exchange.answer(error.response(at: place))
    }
  }

  /// The greater of the clock and the end of the log.
  private var place: Timetoken { gate.home?.place ?? Timetoken(now()) }

  /// The call of a request, whose body can be compressed; nil if its path is none of PubNub's.
  static func parse(_ request: HTTPRequest) throws(PubNubRefusal) -> PubNubRequest? {
    let raw = RawRequest(method: request.method, target: request.target)
    guard !request.body.isEmpty else { return try PubNubRequest(raw) }
    let body: [UInt8]
    do {
      // The largest is that of a token's grant.
      body = try RequestBody.decompressed(
        request.body, maximumByteCount: GrantTokenRequest.maximumByteCount)
    } catch {
      switch error {
      case .tooLarge: throw PubNubRefusal(.publish, 413, "Request Entity Too Large")
      case .malformed: throw PubNubRefusal(.publish, 400, "Could Not Parse Request")
      }
    }
    return try PubNubRequest(
      RawRequest(method: request.method, target: request.target, body: body))
  }

  /// While the vault is locked or the home cut off, a poll is held and answered with its own place; all else is refused for now.
  ///
  /// A refusal of a poll would stop some SDKs for good: docs/reference/pubnub-api.md.
  private func answerSealed(_ request: PubNubRequest, _ exchange: HTTPExchange) {
    guard case .subscribe(let call) = request.call, let place = call.place else {
      let refusal = PubNubRefusal(
        request.family, 503, gate.isCutOff ? HomeGate.cutOff : "The server is locked")
      return exchange.answer(refusal.response(at: self.place))
    }
    gate.hold(exchange, for: holdTime) { SubscribeEnvelope(place).response }
  }

  private func answer(_ exchange: PubNubExchange) throws(PubNubRefusal) {
    switch exchange.request.call {
    case .time, .unavailable: break
    case .publish(let call): try exchange.publish(call)
    case .subscribe(let call): try exchange.subscribe(call)
    case .heartbeat(let call): try exchange.heartbeat(call)
    case .leave(let call): try exchange.leave(call)
    case .hereNow(let call): try exchange.hereNow(call)
    case .whereNow(let userID): try exchange.whereNow(userID)
    case .getState(let call, let userID): try exchange.getState(call, userID)
    case .setState(let call, let userID, let state):
      try exchange.setState(call, userID, state)
    case .history(let call): try exchange.history(call)
    case .fetch(let call): try exchange.fetch(call)
    case .messageCounts(let places): try exchange.messageCounts(places)
    case .deleteMessages(let call): try exchange.deleteMessages(call)
    case .groups(let call): try exchange.groups(call)
    case .access(let call): try exchange.access(call)
    }
  }
}

/// One call on an open home: its caller, and the ways to answer.
struct PubNubExchange: Sendable {
  let request: PubNubRequest
  let exchange: HTTPExchange
  let home: OpenHome
  let service: PubNubService
  let caller: PubNubCaller

  /// Finds the caller.
  ///
  /// - Parameters:
  ///   - login: whom the fields `Authorization` name.
  ///   - challenges: nil for those of the application.
  init(
    _ request: PubNubRequest, _ exchange: HTTPExchange, _ home: OpenHome, _ service: PubNubService,
    _ application: DirectoryEntry, login: Principal? = nil, _ challenges: [Challenge]? = nil
  ) throws(PubNubRefusal) {
    let isProtected = exchange.request.isProtected
    self.request = request
    self.exchange = exchange
    self.home = home
    self.service = service
    do {
      caller = try PubNubCaller(
        request, of: application, in: home.directory, isProtected: isProtected, login: login,
        challenges: challenges ?? home.challenges(of: application, isProtected: isProtected),
        at: home.now())
    } catch {
      throw PubNubRefusal(request.family, 500, "Internal Error")
    }
  }

  func answer(_ response: HTTPResponse) { exchange.answer(response) }

  func refuse(_ status: Int, _ message: String) {
    answer(PubNubRefusal(request.family, status, message).response(at: home.place))
  }

  /// The engine's channel.
  ///
  /// - Throws: for a name that is too long together with that of the application.
  func channel(_ name: ChannelName) throws(PubNubRefusal) -> Channel {
    try channels([name])[0]
  }

  func channels(_ names: some Sequence<ChannelName>) throws(PubNubRefusal) -> [Channel] {
    try caller.application.channels(names, request.family)
  }

  /// Whether the caller can do this on all of these names; if not, the request is answered.
  func isAllowed(
    _ operation: AccessOperation, channels: [ChannelName] = [], groups: [GroupName] = []
  ) -> Bool {
    let refused = home.check(caller, operation, channels: channels, groups: groups)
    guard let refusal = caller.answer(to: refused) else { return true }
    answer(refusal)
    return false
  }

  /// Does the rest of the call in a task of its own, and answers an error of the engine or the tables.
  ///
  /// - Parameter executor: nil for the threads that all tasks share.
  func run(
    on executor: (any TaskExecutor)? = nil,
    _ body: @escaping @Sendable () async throws -> HTTPResponse
  ) {
    Task(executorPreference: executor) {
      do {
        answer(try await body())
      } catch let error as PubNubRefusal {
        answer(error.response(at: home.place))
      } catch {
        let (status, message) = Self.refusal(error)
        refuse(status, message)
      }
    }
  }

  /// Lets other tasks run before the next slice of the call.
  ///
  /// - Throws: `CancellationError` if the client has left.
  func endSlice() async throws {
    await Task.yield()
    if exchange.isEnded { throw CancellationError() }
  }

  static func refusal(_ error: any Error) -> (Int, String) {
    switch error {
    case let refusal as PublishingRefusal: (refusal.status, refusal.message)
    case let error as EngineError:
      switch error.code {
      case .payloadTooLarge: (413, "Message Too Large")
      case .queueFull: (429, "Storage quota exceeded")
      case .busy, .diskFull, .stopped, .vaultLocked, .cancelled, .outcomeUnknown:
        (503, "Try again later")
      default: (500, "Internal Error")
      }
    case let error as ApplicationStoreError:
      switch error.code {
      // PubNub's words, which the next two follow.
      case .tooManyGroups: (400, "Maximum channel group count exceeded.")
      case .tooManyChannels: (400, "Maximum channel count exceeded.")
      case .tooManyGrants: (400, "Maximum grant count exceeded.")
      default: error.underlying.map(refusal) ?? (500, "Internal Error")
      }
    default: (500, "Internal Error")
    }
  }
}
