internal import StrictJSON

/// What this server sends to a client of Pusher's protocol.
///
/// `data` is a string everywhere but in `pusher:error`: the clients that read one form alone read these.
enum PusherEvent: Sendable, Equatable {
  case established(socketID: String)
  case pong
  /// Without a channel: a client would take it for an event of that channel.
  case error(code: UInt16?, message: String)
  /// - Parameter roster: who is present, on a presence channel.
  case subscribed(channel: String, roster: PusherRoster?)
  case refused(channel: String, PusherRefusal)
  case cacheMiss(channel: String)
  case memberAdded(channel: String, PusherMember)
  case memberRemoved(channel: String, userID: String)
  case message(PusherMessage)

  /// How long a client waits in silence before it pings, in seconds.
  ///
  /// JavaScript's client never connects without it.
  static let activitySeconds = 120

  /// The JSON.
  var bytes: [UInt8] {
    switch self {
    case .established(let socketID):
      Self.event(
        "pusher:connection_established",
        data: #"{"socket_id":"\#(socketID)","activity_timeout":\#(Self.activitySeconds)}"#)
    case .pong: Self.event("pusher:pong", data: "{}")
    case .error(let code, let message):
      Array(
        JSONValue.object([
          JSONMember("event", "pusher:error"),
          JSONMember(
            "data",
            [
              "code": code.map { .integer(Int64($0)) } ?? .null, "message": .string(message),
            ]),
        ]).text.utf8)
    case .subscribed(let channel, let roster):
      Self.event(
        "pusher_internal:subscription_succeeded", channel: channel, data: roster?.json ?? "{}")
    case .refused(let channel, let refusal):
      Self.event("pusher:subscription_error", channel: channel, data: refusal.json)
    // Some clients drop an event without data.
    case .cacheMiss(let channel): Self.event("pusher:cache_miss", channel: channel, data: "{}")
    case .memberAdded(let channel, let member):
      Self.event("pusher_internal:member_added", channel: channel, data: member.json)
    case .memberRemoved(let channel, let userID):
      Self.event(
        "pusher_internal:member_removed", channel: channel,
        data: JSONValue.object([JSONMember("user_id", .string(userID))]).text)
    case .message(let message): message.bytes
    }
  }

  private static func event(_ name: String, channel: String? = nil, data: String) -> [UInt8] {
    json(name, channel: channel, userID: nil, data: Array(data.utf8))
  }

  /// The JSON of an event whose data is a string.
  static func json(
    _ name: String, channel: String?, userID: String?, data: [UInt8]
  ) -> [UInt8] {
    var json: [UInt8] = []
    json.reserveCapacity(data.count + data.count / 8 + 128)
    json += #"{"event":"#.utf8
    JSONText.append(quoting: name, to: &json)
    if let channel {
      json += #","channel":"#.utf8
      JSONText.append(quoting: channel, to: &json)
    }
    json += #","data":"#.utf8
    JSONText.append(quoting: data, to: &json)
    if let userID {
      json += #","user_id":"#.utf8
      JSONText.append(quoting: userID, to: &json)
    }
    json.append(UInt8(ascii: "}"))
    return json
  }
}

extension PusherMember {
  fileprivate var json: String {
    var json = Array(#"{"user_id":"#.utf8)
    JSONText.append(quoting: id, to: &json)
    return String(decoding: json + #","user_info":"#.utf8 + info + "}".utf8, as: UTF8.self)
  }
}

/// Why a subscription is refused or ends; the connection stays.
struct PusherRefusal: Error, Sendable, Equatable {
  let type: String
  /// 401 for a credential that is missing or not valid, 403 for one without the right.
  let status: Int
  let message: String

  static func unauthorized(_ message: String) -> PusherRefusal {
    PusherRefusal(type: "AuthError", status: 401, message: message)
  }

  static func forbidden(_ message: String) -> PusherRefusal {
    PusherRefusal(type: "AuthError", status: 403, message: message)
  }

  static func limit(_ message: String) -> PusherRefusal {
    PusherRefusal(type: "LimitReached", status: 4100, message: message)
  }

  fileprivate var json: String {
    JSONValue.object([
      JSONMember("type", .string(type)), JSONMember("error", .string(message)),
      JSONMember("status", .integer(Int64(status))),
    ]).text
  }
}

/// Why a connection ends: an error event, and then a close frame with the same code.
///
/// 4000 to 4099: do not connect again. 4100 to 4199: later. 4200 to 4299: immediately.
struct PusherEnding: Error, Sendable, Equatable {
  let code: UInt16
  let message: String

  init(_ code: UInt16, _ message: String) {
    self.code = code
    self.message = message
  }

  static let unknownApplication = PusherEnding(4001, "no application has this key")
  static let malformedVersion = PusherEnding(4006, "the protocol version is no number")
  static let unsupportedVersion = PusherEnding(4007, "this server has the protocols 5 to 7")
  static let noVersion = PusherEnding(4008, "the protocol version is missing")
  static let terminated = PusherEnding(4009, "the application has ended this connection")
  static let sealed = PusherEnding(4100, "the server is locked")
  static let cutOff = PusherEnding(4100, HomeGate.cutOff)
  static let slow = PusherEnding(4100, "the client reads too slowly")
  static let outOfMemory = PusherEnding(4100, "the connection holds too much memory")
  static let tooManyFrames = PusherEnding(4100, "the client sends too much")
  static let stopping = PusherEnding(4200, "the server stops")
  static let silent = PusherEnding(4201, "the client answers no ping")
}
