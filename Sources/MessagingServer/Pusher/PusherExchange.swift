internal import AccessControl
internal import ApplicationStore
internal import Foundation
internal import MessagingQueue
internal import StrictJSON

extension PusherService {
  /// Answers a request to the HTTP API.
  func answer(_ exchange: HTTPExchange, _ raw: RawRequest, _ path: PusherPath) {
    exchange.describe(path.route)
    do throws(PusherFault) {
      guard let home = gate.home else { throw PusherFault(503, gate.refusal) }
      let application = try signer(of: raw, path, in: home)
      exchange.describe(application.id)
      let call = PusherExchange(raw: raw, exchange: exchange, home: home, application: application)
      switch path.target {
      case .events: try call.trigger(raw.body)
      case .batch: try call.triggerBatch(raw.body)
      case .channels: try call.channels()
      case .channel(let name): try call.channel(name)
      case .users(let name): try call.users(name)
      case .termination(let userID): try call.terminate(userID)
      case .unknown: throw PusherFault(404, "no such path")
      }
    } catch {
      exchange.answer(error.response)
    }
  }

  /// The application that has signed the request.
  private func signer(
    of raw: RawRequest, _ path: PusherPath, in home: OpenHome
  ) throws(PusherFault) -> DirectoryEntry {
    guard let key = raw.value("auth_key"),
      let application = home.directory.application(
        subscribeKey: String(decoding: key, as: UTF8.self))
    else { throw PusherFault(401, "no application has this auth_key") }
    let signature: PusherSignature
    do {
      signature = try PusherSignature.of(raw, under: application.application, at: home.now())
    } catch {
      throw PusherFault(500, "the signature cannot be verified")
    }
    switch signature {
    case .valid: break
    case .invalidTimestamp:
      throw PusherFault(401, "auth_timestamp is missing or more than 600 seconds away")
    case .otherBody: throw PusherFault(401, "body_md5 is missing, or not that of the body")
    case .mismatch: throw PusherFault(401, "auth_signature is not that of this request")
    }
    guard let text = path.application, text != application.id.description else {
      return application
    }
    guard let number = Int64(text), let id = try? ApplicationID(number),
      home.directory.application(id) != nil
    else { throw PusherFault(404, "there is no such application") }
    throw PusherFault(401, "the auth_key is not of this application")
  }
}

/// One signed call of the HTTP API.
struct PusherExchange: Sendable {
  let raw: RawRequest
  let exchange: HTTPExchange
  let home: OpenHome
  let application: DirectoryEntry

  private func parameter(_ name: StaticString) -> String? {
    raw.value(name).map { String(decoding: $0, as: UTF8.self) }
  }

  /// - Throws: ``PusherFault`` with the reason of a refusal.
  private func require(_ operation: AccessOperation, _ scope: Scope) throws(PusherFault) {
    let decision = home.directory.decide(
      .signed(application.id), operation, Resource(scope, of: application.id), at: home.now())
    guard decision.isAllowed else {
      throw PusherFault(403, decision.ground(of: operation, on: scope))
    }
  }

  // MARK: - Events

  func trigger(_ body: [UInt8]) throws(PusherFault) {
    let trigger = try PusherTrigger(body)
    try publish([trigger]) {
      trigger.attributes.isEmpty
        ? .object([])
        : [
          "channels": .object(
            trigger.channels.map { JSONMember($0.text, attributes($0.text, trigger.attributes)) })
        ]
    }
  }

  func triggerBatch(_ body: [UInt8]) throws(PusherFault) {
    let triggers = try PusherTrigger.batch(body)
    try publish(triggers) {
      triggers.allSatisfy(\.attributes.isEmpty)
        ? .object([])
        : ["batch": .array(triggers.map { attributes($0.channels[0].text, $0.attributes) })]
    }
  }

  /// Publishes all or nothing, and answers when it is on the disk.
  private func publish(
    _ triggers: [PusherTrigger], _ answer: @escaping @Sendable () -> JSONValue
  ) throws(PusherFault) {
    let id: String?
    do throws(DeduplicationHeader.Fault) {
      id = try exchange.request.deduplicationID()
    } catch {
      throw PusherFault(400, error.message)
    }
    var messages: [Message] = []
    for (number, trigger) in triggers.enumerated() {
      var notes = MessageNotes()
      notes.eventName = trigger.name
      notes.excludedSocketID = trigger.socketID
      for name in trigger.channels {
        try require(.publish, .channel(name))
        guard let channel = try? application.channel(name) else {
          throw PusherFault(400, "the name of a channel is too long")
        }
        messages.append(
          Message(
            channel: channel, payload: trigger.data, headers: notes.headers,
            // Several events of a batch can be for one channel.
            deduplicationID: id.map { triggers.count > 1 ? "\($0)-\(number)" : $0 }))
      }
    }
    run { [messages] in
      _ = try await home.publish(messages, of: application)
      return .pusher(json: answer())
    }
  }

  /// Does the rest of the call in a task of its own, and answers an error.
  private func run(_ body: @escaping @Sendable () async throws -> HTTPResponse) {
    Task {
      do {
        exchange.answer(try await body())
      } catch {
        exchange.answer(Self.fault(error).response)
      }
    }
  }

  private static func fault(_ error: any Error) -> PusherFault {
    if let refusal = error as? PublishingRefusal {
      return PusherFault(refusal.status, refusal.message)
    }
    return switch (error as? EngineError)?.code {
    case .payloadTooLarge: PusherFault(413, "the event is too large")
    case .queueFull: PusherFault(429, "the application stores too much")
    case .busy, .diskFull, .stopped, .vaultLocked, .cancelled, .outcomeUnknown:
      PusherFault(503, "try again later")
    default: PusherFault(500, "internal error")
    }
  }

  // MARK: - Channels

  func channels() throws(PusherFault) {
    let wanted = try PusherAttributes(parameter("info"))
    let prefix = parameter("filter_by_prefix") ?? ""
    guard !wanted.contains(.cache) else { throw PusherFault(400, "cache needs one channel") }
    guard !wanted.contains(.userCount) || prefix.hasPrefix("presence-") else {
      throw PusherFault(400, "user_count needs filter_by_prefix=presence-")
    }
    try require(.hereNowEverywhere, .application)
    let members = home.pusher.occupied(in: application.id, prefix: prefix).map {
      JSONMember($0.channel, .object($0.occupancy.members(wanted, of: $0.channel)))
    }
    exchange.answer(.pusher(json: ["channels": .object(members)]))
  }

  func channel(_ text: String) throws(PusherFault) {
    let wanted = try PusherAttributes(parameter("info"))
    let channel = try channel(named: text)
    let isPresence = channel.kind == .presence
    guard !wanted.contains(.userCount) || isPresence else {
      throw PusherFault(400, "user_count needs a presence channel")
    }
    guard !wanted.contains(.subscriptionCount) || !isPresence else {
      throw PusherFault(400, "a presence channel has no subscription_count")
    }
    guard !wanted.contains(.cache) || channel.isCache else {
      throw PusherFault(400, "cache needs a cache channel")
    }
    try require(.hereNow, .channel(channel.name))
    let occupancy = home.pusher.occupancy(of: text, in: application.id)
    let members =
      [JSONMember("occupied", .boolean(occupancy.subscriptionCount > 0))]
      + occupancy.members(wanted, of: text)
    guard wanted.contains(.cache) else {
      return exchange.answer(.pusher(json: .object(members)))
    }
    try require(.history, .channel(channel.name))
    run {
      let name = try application.channel(channel.name)
      let message = try await home.newestMessage(of: name)
      let cache = message.map { cached($0) } ?? .null
      return .pusher(json: .object(members + [JSONMember("cache", cache)]))
    }
  }

  private func cached(_ message: PusherMessage) -> JSONValue {
    let seconds = PusherCache.end(of: message.timetoken).timeIntervalSince(home.now())
    return [
      "data": .string(String(decoding: message.data, as: UTF8.self)),
      "ttl": .integer(Int64(max(1, seconds.rounded(.up)))),
    ]
  }

  func users(_ text: String) throws(PusherFault) {
    let channel = try channel(named: text)
    guard channel.kind == .presence else {
      throw PusherFault(400, "users are on presence channels alone")
    }
    try require(.hereNow, .channel(channel.name))
    let users = home.pusher.occupancy(of: text, in: application.id).userIDs.map {
      JSONValue.object([JSONMember("id", .string($0))])
    }
    exchange.answer(.pusher(json: ["users": .array(users)]))
  }

  func terminate(_ userID: String) throws(PusherFault) {
    try require(.manageAccess, .application)
    home.pusher.terminate(userID, of: application.id)
    exchange.answer(.pusher(json: .object([])))
  }

  private func channel(named text: String) throws(PusherFault) -> PusherChannel {
    guard let channel = PusherChannel(text) else {
      throw PusherFault(400, "the name of the channel is not valid")
    }
    return channel
  }

  /// What is wanted of a channel, as far as it has that.
  private func attributes(_ channel: String, _ wanted: PusherAttributes) -> JSONValue {
    .object(
      home.pusher.occupancy(of: channel, in: application.id).members(wanted, of: channel))
  }
}

extension PusherHub.Occupancy {
  /// Users are counted on presence channels, subscriptions on all others.
  fileprivate func members(_ wanted: PusherAttributes, of channel: String) -> [JSONMember] {
    let isPresence = PusherChannel(channel)?.kind == .presence
    var members: [JSONMember] = []
    if wanted.contains(.userCount), isPresence {
      members.append(JSONMember("user_count", .integer(Int64(userIDs.count))))
    }
    if wanted.contains(.subscriptionCount), !isPresence {
      members.append(JSONMember("subscription_count", .integer(Int64(subscriptionCount))))
    }
    return members
  }
}
