internal import Foundation
internal import MessagingQueue

/// What the server notes about a message in its headers, under a prefix that no client can send.
struct MessageNotes: Sendable, Equatable {
  /// The beginning of the names of all headers that only the server writes.
  static let prefix = "datavault-"

  /// The name that an event has for Pusher's clients if it was published without one.
  static let standardEventName = "message"

  /// The kinds of events; a message that says none is a message.
  enum Kind: String, Sendable { case message, signal, presence }

  var kind = Kind.message
  /// The user id of the publisher.
  var publisher: String?
  /// JSON text for filters and subscribers.
  var meta: String?
  var customType: String?
  /// The name of the event for Pusher's clients; nil for ``standardEventName``.
  var eventName: String?
  /// The Pusher connection that does not get the message.
  var excludedSocketID: String?
  /// The type of the payload that a STOMP client has named; nil if its publisher named none.
  var contentType: String?
  /// The user that the application's signature names as the sender of a client event.
  var userID: String?
  /// Whether history leaves the message out: PubNub's `store=0`.
  var isHidden = false
  /// From when on history leaves the message out: PubNub's `ttl`.
  var expiration: Timetoken?

  init() {}

  init(_ headers: [String: String]) {
    kind = headers[Self.prefix + "kind"].flatMap(Kind.init) ?? .message
    publisher = headers[Self.prefix + "publisher"]
    meta = headers[Self.prefix + "meta"]
    customType = headers[Self.prefix + "type"]
    eventName = headers[Self.prefix + "event"]
    excludedSocketID = headers[Self.prefix + "excluded"]
    contentType = headers[Self.prefix + "content-type"]
    userID = headers[Self.prefix + "user"]
    isHidden = headers[Self.prefix + "hidden"] == "1"
    expiration = headers[Self.prefix + "expires"].flatMap(Timetoken.init)
  }

  var headers: [String: String] {
    var headers: [String: String] = [:]
    if kind != .message { headers[Self.prefix + "kind"] = kind.rawValue }
    headers[Self.prefix + "publisher"] = publisher
    headers[Self.prefix + "meta"] = meta
    headers[Self.prefix + "type"] = customType
    headers[Self.prefix + "event"] = eventName
    headers[Self.prefix + "excluded"] = excludedSocketID
    headers[Self.prefix + "content-type"] = contentType
    headers[Self.prefix + "user"] = userID
    if isHidden { headers[Self.prefix + "hidden"] = "1" }
    headers[Self.prefix + "expires"] = expiration?.description
    return headers
  }

  /// Whether history shows the message.
  func isInHistory(at now: Date) -> Bool {
    kind == .message && !isHidden && (expiration.map { now < $0.date } ?? true)
  }
}
