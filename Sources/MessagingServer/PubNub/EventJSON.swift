internal import AccessControl
internal import Foundation
internal import MessagingQueue
internal import Realtime
internal import StrictJSON

/// The JSON of an event in PubNub's envelope; all but `b` is the same for every subscriber.
struct EventJSON: Sendable {
  /// The object without its end.
  private let bytes: [UInt8]

  /// - Parameter subscribeKey: of the application.
  init(_ message: LogMessage, subscribeKey: String) {
    let notes = MessageNotes(message.headers)
    var json: [UInt8] = []
    json.reserveCapacity(message.payload.count + 256)
    json += #"{"a":"0","f":0"#.utf8
    if let publisher = notes.publisher, notes.kind != .presence {
      json += #","i":"#.utf8
      JSONText.append(quoting: publisher, to: &json)
    }
    // 0 would be a message, but JavaScript takes it for an event of a file.
    if notes.kind == .signal { json += #","e":1"#.utf8 }
    json += #","p":{"t":""#.utf8
    json += message.timetoken.description.utf8
    json += #"","r":1},"k":"#.utf8
    JSONText.append(quoting: subscribeKey, to: &json)
    json += #","c":"#.utf8
    JSONText.append(quoting: message.channel.nameInApplication, to: &json)
    json += #","d":"#.utf8
    let payload = PayloadJSON(message.payload)
    json += payload.bytes
    if let meta = payload.meta(notes) {
      json += #","u":"#.utf8
      json += meta.utf8
    }
    if let customType = notes.customType {
      json += #","cmt":"#.utf8
      JSONText.append(quoting: customType, to: &json)
    }
    bytes = json
  }

  /// Appends the event for a subscriber whom it reaches through this source.
  ///
  /// JavaScript drops an event whose `b` is not what its client asked for.
  func append(to json: inout [UInt8], through source: Subscription.Source) {
    json += bytes
    switch source {
    case .channel: break
    case .pattern(let pattern): Self.append(pattern.nameInApplication, &json)
    case .group(let name): Self.append(name, &json)
    }
    json.append(UInt8(ascii: "}"))
  }

  private static func append(_ subscription: String, _ json: inout [UInt8]) {
    json += #","b":"#.utf8
    JSONText.append(quoting: subscription, to: &json)
  }
}

/// A payload as JSON: what another protocol published becomes a string.
struct PayloadJSON {
  let bytes: [UInt8]
  /// Whether the string is base64, because the payload is no UTF-8.
  let isBase64: Bool

  init(_ payload: [UInt8]) {
    if JSONText.isValid(payload) {
      bytes = payload
      isBase64 = false
      return
    }
    var json: [UInt8] = []
    let text = String(validating: payload, as: UTF8.self)
    JSONText.append(quoting: text ?? Data(payload).base64EncodedString(), to: &json)
    bytes = json
    isBase64 = text == nil
  }

  /// The JSON of the meta beside it: the publisher's, else the mark of base64.
  func meta(_ notes: MessageNotes) -> String? {
    notes.meta ?? (isBase64 ? #"{"content-encoding":"base64"}"# : nil)
  }
}

/// The answer to a subscription: the place to continue from, and events.
struct SubscribeEnvelope {
  /// The one region of this server; Swift's SDK expects one digit.
  static let region = 1

  private var json = JSONListBuilder(#"{"t":{"t":""#)

  /// `t` comes first, because Swift's SDK looks for it there when it cannot decode the rest.
  init(_ place: Timetoken) {
    // An empty log ends before the first place of 17 digits.
    let place = max(place, Timetoken(.distantPast))
    json.bytes += #"\#(place)","r":\#(Self.region)},"m":["#.utf8
  }

  mutating func append(_ event: EventJSON, through source: Subscription.Source) {
    json.beginElement()
    event.append(to: &json.bytes, through: source)
  }

  /// The response of HTTP.
  var response: HTTPResponse { HTTPResponse(200, json.bytes + "]}".utf8) }
}

extension Channel {
  /// The name without that of the application.
  var nameInApplication: String {
    name.firstIndex(of: "/").map { String(name[name.index(after: $0)...]) } ?? name
  }
}
