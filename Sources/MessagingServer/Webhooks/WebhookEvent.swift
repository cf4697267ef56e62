internal import ApplicationStore
internal import StrictJSON

/// What happened on a channel of Pusher's protocol, as a webhook is told of it.
enum WebhookEvent: Sendable, Equatable {
  /// The first subscriber came.
  case channelOccupied(String)
  /// The last subscriber left.
  case channelVacated(String)
  /// A user came to a presence channel.
  case memberAdded(channel: String, userID: String)
  /// A user left a presence channel.
  case memberRemoved(channel: String, userID: String)
  /// A client sent an event; `userID` is nil outside of presence channels.
  case client(channel: String, name: String, data: [UInt8], socketID: String, userID: String?)

  var kind: WebhookEventKind {
    switch self {
    case .channelOccupied: .channelOccupied
    case .channelVacated: .channelVacated
    case .memberAdded: .memberAdded
    case .memberRemoved: .memberRemoved
    case .client: .clientEvent
    }
  }

  /// The event as JSON: its name, then what it concerns.
  ///
  /// Data is always a string: receivers decode no other.
  var json: [UInt8] {
    var json = Array(#"{"name":""#.utf8) + kind.rawValue.utf8 + [UInt8(ascii: "\"")]
    func append(_ name: StaticString, _ value: [UInt8]) {
      json += #",""#.utf8
      json += "\(name)".utf8
      json += #"":"#.utf8
      JSONText.append(quoting: value, to: &json)
    }
    switch self {
    case .channelOccupied(let channel), .channelVacated(let channel):
      append("channel", Array(channel.utf8))
    case .memberAdded(let channel, let userID), .memberRemoved(let channel, let userID):
      append("channel", Array(channel.utf8))
      append("user_id", Array(userID.utf8))
    case .client(let channel, let name, let data, let socketID, let userID):
      append("channel", Array(channel.utf8))
      append("event", Array(name.utf8))
      append("data", data)
      append("socket_id", Array(socketID.utf8))
      if let userID { append("user_id", Array(userID.utf8)) }
    }
    json.append(UInt8(ascii: "}"))
    return json
  }
}

/// The body of a delivery: `{"time_ms":1327078148132,"events":[...]}`.
struct WebhookBody: Sendable {
  let timeInMilliseconds: Int64
  private let events: [JSONValue]
  private let bytes: [UInt8]

  /// Reads a body that the server has stored; nil for any other bytes.
  init?(_ bytes: [UInt8]) {
    guard let body = try? JSONReader.value(bytes),
      case .integer(let time)? = body.member("time_ms"),
      case .array(let events)? = body.member("events")
    else { return nil }
    timeInMilliseconds = time
    self.events = events
    self.bytes = bytes
  }

  /// Makes the bytes of a body.
  static func bytes(_ events: some Collection<[UInt8]>, timeInMilliseconds: Int64) -> [UInt8] {
    Array(#"{"time_ms":\#(timeInMilliseconds),"events":["#.utf8)
      + events.joined(separator: [UInt8(ascii: ",")]) + "]}".utf8
  }

  /// The body with the events of some kinds alone; nil if it has none.
  func bytes(of kinds: Set<WebhookEventKind>) -> [UInt8]? {
    let wanted = events.filter { event in
      guard case .string(let name)? = event.member("name") else { return false }
      return WebhookEventKind(rawValue: name).map(kinds.contains) ?? false
    }
    if wanted.count == events.count { return bytes }
    return wanted.isEmpty
      ? nil
      : Self.bytes(wanted.map { Array($0.text.utf8) }, timeInMilliseconds: timeInMilliseconds)
  }
}
