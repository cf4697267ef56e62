internal import AccessControl
internal import StrictJSON

/// A path of the HTTP API, which says which call it is.
struct PusherPath: Sendable, Equatable {
  enum Target: Sendable, Equatable {
    case events
    case batch
    case channels
    case channel(String)
    case users(String)
    case termination(String)
    case unknown
  }

  /// The application's number as it was sent; nil for the path that Python's SDK sends without one.
  let application: String?
  let target: Target

  /// Nil for another path.
  init?(_ request: RawRequest) {
    // Before the path is split: that of another protocol can have a message.
    guard ["/apps/", "/users/"].contains(where: { request.path.starts(with: $0.utf8) }) else {
      return nil
    }
    var segments = request.path.dropFirst().split(
      separator: UInt8(ascii: "/"), omittingEmptySubsequences: false
    ).map { String(decoding: PercentEncoding.decode($0), as: UTF8.self) }
    switch segments.first {
    case "apps" where segments.count > 2:
      application = segments[1]
      segments.removeFirst(2)
    case "users": application = nil
    default: return nil
    }
    target =
      switch (request.method, segments.count, segments[0], segments.last) {
      case ("POST", 1, "events", _): .events
      case ("POST", 1, "batch_events", _): .batch
      case ("GET", 1, "channels", _): .channels
      case ("GET", 2, "channels", _): .channel(segments[1])
      case ("GET", 3, "channels", "users"): .users(segments[1])
      case ("POST", 3, "users", "terminate_connections"): .termination(segments[1])
      default: .unknown
      }
  }

  var route: Route {
    switch target {
    case .events: .pusherEvents
    case .batch: .pusherBatch
    case .channels: .pusherChannels
    case .channel: .pusherChannel
    case .users: .pusherUsers
    case .termination: .pusherTermination
    case .unknown: .other
    }
  }
}

/// An answer to a request that is not done.
struct PusherFault: Error, Sendable, Equatable {
  let status: Int
  let message: String

  init(_ status: Int, _ message: String) {
    self.status = status
    self.message = message
  }

  var response: HTTPResponse { .pusher(status, message) }
}

/// What an answer says of a channel beside its name.
struct PusherAttributes: OptionSet, Sendable {
  let rawValue: Int

  static let userCount = PusherAttributes(rawValue: 1)
  static let subscriptionCount = PusherAttributes(rawValue: 2)
  static let cache = PusherAttributes(rawValue: 4)

  /// - Throws: a fault for an attribute that does not exist.
  init(_ text: String?) throws(PusherFault) {
    self = []
    for name in (text ?? "").split(separator: ",") {
      switch name {
      case "user_count": insert(.userCount)
      case "subscription_count": insert(.subscriptionCount)
      case "cache": insert(.cache)
      default: throw PusherFault(400, "info has an attribute that does not exist")
      }
    }
  }

  init(rawValue: Int) { self.rawValue = rawValue }
}

/// An event that a server triggers.
struct PusherTrigger: Sendable {
  /// The most channels of an event.
  static let maximumChannelCount = 100
  /// The most events of a batch.
  static let maximumBatchCount = 10

  let channels: [ChannelName]
  let name: String
  let data: [UInt8]
  /// The connection that does not get it.
  let socketID: String?
  let attributes: PusherAttributes

  /// Reads the body of `events`.
  ///
  /// - Throws: ``PusherFault``.
  init(_ body: [UInt8]) throws(PusherFault) { self = try Self(Self.object(body)) }

  /// Reads the body of `batch_events`.
  ///
  /// - Throws: ``PusherFault``.
  static func batch(_ body: [UInt8]) throws(PusherFault) -> [PusherTrigger] {
    guard let batch = try object(body)["batch"]?.elements else {
      throw PusherFault(400, "batch is missing")
    }
    guard batch.count <= maximumBatchCount else {
      throw PusherFault(400, "a batch has at most \(maximumBatchCount) events")
    }
    var triggers: [PusherTrigger] = []
    for event in batch {
      guard let members = event.members else { throw PusherFault(400, "an event is no object") }
      triggers.append(try PusherTrigger(members))
    }
    return triggers
  }

  private static func object(_ body: [UInt8]) throws(PusherFault) -> [JSONMember] {
    do {
      return try JSONReader.object(body)
    } catch {
      throw PusherFault(400, "the body is no JSON object")
    }
  }

  private init(_ members: [JSONMember]) throws(PusherFault) {
    channels = try Self.channels(members)
    guard let name = try Self.text("name", members), !name.isEmpty,
      name.unicodeScalars.count <= PusherLimits.eventNameCount,
      !name.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }),
      !PusherKind.reservedPrefixes.contains(where: { name.utf8.starts(with: $0.utf8) })
    else { throw PusherFault(400, "name is missing, reserved or too long") }
    self.name = name
    guard let data = try Self.text("data", members) else {
      throw PusherFault(400, "data is missing")
    }
    guard data.utf8.count <= PusherLimits.dataByteCount else {
      throw PusherFault(413, "data has more than \(PusherLimits.dataByteCount) bytes")
    }
    self.data = Array(data.utf8)
    socketID = try Self.text("socket_id", members)
    guard socketID.map(PusherSession.isSocketID) ?? true else {
      throw PusherFault(400, "socket_id is not valid")
    }
    attributes = try PusherAttributes(Self.text("info", members))
  }

  /// The text of a member; nil if it is missing or null, which one SDK writes for what is missing.
  private static func text(
    _ name: String, _ members: [JSONMember]
  ) throws(PusherFault) -> String? {
    switch members[name] {
    case nil, .null: nil
    case .string(let text): text
    default: throw PusherFault(400, "\(name) is no string")
    }
  }

  private static func channels(_ members: [JSONMember]) throws(PusherFault) -> [ChannelName] {
    var texts: [String] = []
    for value in members["channels"]?.elements ?? [] {
      guard let text = value.string else { throw PusherFault(400, "a channel is no string") }
      texts.append(text)
    }
    if let text = try text("channel", members) { texts.append(text) }
    guard (1...maximumChannelCount).contains(texts.count) else {
      throw PusherFault(400, "an event has 1 to \(maximumChannelCount) channels")
    }
    var channels: [ChannelName] = []
    for text in texts {
      guard PusherChannel.isPublishable(text), let name = try? ChannelName(text) else {
        throw PusherFault(400, "the name of a channel is not valid")
      }
      if !channels.contains(name) { channels.append(name) }
    }
    return channels
  }
}
