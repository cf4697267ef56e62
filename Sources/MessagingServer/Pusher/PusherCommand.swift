internal import StrictJSON

/// What a client of Pusher's protocol sends: one JSON object in each WebSocket message.
enum PusherCommand: Sendable, Equatable {
  case ping
  /// A pong, which needs no answer.
  case pong
  case subscribe(channel: String, auth: String, channelData: String?)
  case unsubscribe(channel: String)
  /// An event for the other clients of a channel; its data as text.
  case clientEvent(name: String, channel: String, data: [UInt8])
  /// An event that this server does not know.
  case unknown

  /// Nil for a message that is not valid.
  init?(_ bytes: [UInt8]) {
    guard let members = try? JSONReader.object(bytes), let event = members["event"]?.string else {
      return nil
    }
    let data = members["data"]
    switch event {
    case "pusher:ping": self = .ping
    case "pusher:pong": self = .pong
    case "pusher:subscribe":
      guard let channel = data?.member("channel")?.string,
        let auth = Self.text(data?.member("auth")),
        let channelData = Self.text(data?.member("channel_data"))
      else { return nil }
      self = .subscribe(channel: channel, auth: auth ?? "", channelData: channelData)
    case "pusher:unsubscribe":
      guard let channel = data?.member("channel")?.string else { return nil }
      self = .unsubscribe(channel: channel)
    case _ where event.hasPrefix("client-"):
      guard let channel = members["channel"]?.string else { return nil }
      self = .clientEvent(name: event, channel: channel, data: Self.bytes(data ?? .null))
    default: self = .unknown
    }
  }

  /// The text of a member that can be missing or null; nil for another value.
  private static func text(_ value: JSONValue?) -> String?? {
    switch value {
    case nil, .null: .some(nil)
    case .string(let text): text
    default: nil
    }
  }

  /// A string as it is, another value as JSON: clients send objects, and some receivers read only strings.
  private static func bytes(_ value: JSONValue) -> [UInt8] {
    if case .string(let text) = value { return Array(text.utf8) }
    var bytes: [UInt8] = []
    value.append(to: &bytes)
    return bytes
  }
}

/// The user of a presence channel, from the `channel_data` of the subscription.
struct PusherMember: Sendable, Equatable {
  /// The longest id, in characters.
  static let maximumIDCount = 128
  /// The largest `user_info`, in bytes of JSON.
  static let maximumInfoByteCount = 1024

  let id: String
  /// JSON, `null` if there is none.
  let info: [UInt8]

  /// - Throws: ``PusherRefusal``.
  init(_ channelData: String) throws(PusherRefusal) {
    guard let members = try? JSONReader.object(Array(channelData.utf8)),
      let id = Self.id(members["user_id"]), !id.isEmpty
    else { throw .unauthorized("channel_data is no JSON object with a user_id") }
    var info: [UInt8] = []
    (members["user_info"] ?? .null).append(to: &info)
    guard id.unicodeScalars.count <= Self.maximumIDCount else {
      throw .limit("user_id has more than \(Self.maximumIDCount) characters")
    }
    guard info.count <= Self.maximumInfoByteCount else {
      throw .limit("user_info has more than \(Self.maximumInfoByteCount) bytes")
    }
    self.id = id
    self.info = info
  }

  init(id: String, info: [UInt8]) {
    self.id = id
    self.info = info
  }

  /// Some servers write numbers.
  private static func id(_ value: JSONValue?) -> String? {
    switch value {
    case .string(let text): text
    case .integer(let number): String(number)
    default: nil
    }
  }
}
