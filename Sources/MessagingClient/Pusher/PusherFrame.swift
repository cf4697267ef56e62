internal import StrictJSON

/// A message of the server on a connection of Pusher's protocol.
enum PusherFrame: Sendable, Equatable {
  case established(socketID: String, activitySeconds: Int64)
  case error(code: Int64?, message: String)
  case ping
  case pong
  case subscribed(channel: String, members: [String: String])
  case subscriptionError(channel: String, status: Int64?, message: String)
  case cacheMiss(channel: String)
  case memberAdded(channel: String, userID: String, info: String?)
  case memberRemoved(channel: String, userID: String)
  case event(channel: String, name: String, userID: String?, data: [UInt8])
  /// An event that this client does not know.
  case unknown

  /// What it is, as the log says it; the names of events are the application's.
  var kind: String {
    switch self {
    case .established: "connection_established"
    case .error: "error"
    case .ping: "ping"
    case .pong: "pong"
    case .subscribed: "subscription_succeeded"
    case .subscriptionError: "subscription_error"
    case .cacheMiss: "cache_miss"
    case .memberAdded: "member_added"
    case .memberRemoved: "member_removed"
    case .event: "event"
    case .unknown: "unknown"
    }
  }

  /// Nil for a message that is not in the protocol.
  init?(_ bytes: [UInt8]) {
    guard let value = try? JSONReader.value(bytes), let name = value.member("event")?.string else {
      return nil
    }
    let (channel, data) = (value.member("channel")?.string, value.member("data"))
    // `data` is a text of JSON, or the JSON itself.
    let inner = data?.string.flatMap { try? JSONReader.value(Array($0.utf8)) } ?? data
    switch (name, channel) {
    case ("pusher:connection_established", _):
      guard let socketID = inner?.member("socket_id")?.string, PusherName.isSocketID(socketID)
      else { return nil }
      self = .established(
        socketID: socketID, activitySeconds: inner?.member("activity_timeout")?.integer ?? 120)
    case ("pusher:error", _):
      self = .error(
        code: inner?.member("code")?.integer, message: inner?.member("message")?.string ?? "")
    case ("pusher:ping", _): self = .ping
    case ("pusher:pong", _): self = .pong
    case ("pusher_internal:subscription_succeeded", let channel?):
      self = .subscribed(channel: channel, members: Self.members(inner))
    case ("pusher:subscription_error", let channel?):
      self = .subscriptionError(
        channel: channel, status: inner?.member("status")?.integer,
        message: inner?.member("error")?.string ?? "")
    case ("pusher:cache_miss", let channel?): self = .cacheMiss(channel: channel)
    case ("pusher_internal:member_added", let channel?):
      guard let userID = Self.userID(inner?.member("user_id")) else { return nil }
      self = .memberAdded(
        channel: channel, userID: userID, info: inner?.member("user_info")?.text)
    case ("pusher_internal:member_removed", let channel?):
      guard let userID = Self.userID(inner?.member("user_id")) else { return nil }
      self = .memberRemoved(channel: channel, userID: userID)
    case (_, let channel?) where !name.utf8.starts(with: "pusher".utf8) || !name.contains(":"):
      self = .event(
        channel: channel, name: name, userID: value.member("user_id")?.string,
        data: Array((data?.string ?? data?.text ?? "").utf8))
    default: self = .unknown
    }
  }

  /// The users of a presence channel, each with the JSON text of its information.
  private static func members(_ data: JSONValue?) -> [String: String] {
    Dictionary(
      (data?.member("presence")?.member("hash")?.members ?? []).map { ($0.name, $0.value.text) },
      uniquingKeysWith: { first, _ in first })
  }

  /// Some servers send a number.
  private static func userID(_ value: JSONValue?) -> String? {
    value?.string ?? value?.integer.map(String.init)
  }
}
