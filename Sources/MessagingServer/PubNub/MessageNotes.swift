internal import Foundation
internal import MessagingQueue

/// What the server notes about a message in its headers, under a prefix that no client can send.
struct MessageNotes: Sendable, Equatable {
  /// The beginning of the names of all headers that only the server writes.
  static let prefix = "datavault-"

  /// The kinds of events; a message that says none is a message.
  enum Kind: String, Sendable { case message, signal, presence }

  var kind = Kind.message
  /// The user id of the publisher.
  var publisher: String?
  /// JSON text for filters and subscribers.
  var meta: String?
  var customType: String?
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
    isHidden = headers[Self.prefix + "hidden"] == "1"
    expiration = headers[Self.prefix + "expires"].flatMap(Timetoken.init)
  }

  var headers: [String: String] {
    var headers: [String: String] = [:]
    if kind != .message { headers[Self.prefix + "kind"] = kind.rawValue }
    headers[Self.prefix + "publisher"] = publisher
    headers[Self.prefix + "meta"] = meta
    headers[Self.prefix + "type"] = customType
    if isHidden { headers[Self.prefix + "hidden"] = "1" }
    headers[Self.prefix + "expires"] = expiration?.description
    return headers
  }

  /// Whether history shows the message.
  func isInHistory(at now: Date) -> Bool {
    kind == .message && !isHidden && (expiration.map { now < $0.date } ?? true)
  }
}
