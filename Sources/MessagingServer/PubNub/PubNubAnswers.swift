internal import AccessControl
internal import MessagingQueue
internal import StrictJSON

/// The answers of PubNub's API that have one form.
extension HTTPResponse {
  /// An answer with a JSON value.
  init(_ status: Int = 200, json: JSONValue) {
    var body: [UInt8] = []
    json.append(to: &body)
    self.init(status, body)
  }

  /// The answer to a publication: `[1,"Sent","17..."]`.
  static func sent(_ place: Timetoken) -> HTTPResponse {
    HTTPResponse(200, #"[1,"Sent","\#(place)"]"#)
  }

  /// The answer to `/time/0`, the only one with a timetoken as a number.
  ///
  /// It says that a publication can be repeated with its deduplication id, also while the vault is locked.
  static func time(_ place: Timetoken) -> HTTPResponse {
    var response = HTTPResponse(200, "[\(place)]")
    response.saysDeduplicationWindow = true
    return response
  }

  /// The answer of the access manager.
  init(_ reply: AccessReply) { self.init(reply.status, Array(reply.text.utf8)) }

  /// The answer to credentials of HTTP that are missing or wrong.
  static func unauthorized(_ challenges: [Challenge]) -> HTTPResponse {
    var response = HTTPResponse(.unauthorized)
    response.challenges = challenges
    return response
  }

  /// The answer to a part of PubNub that this server does not have.
  ///
  /// 403, because 404 says that an object is missing, and SDKs try again after a 501.
  static func unavailable(_ feature: PubNubFeature) -> HTTPResponse {
    let name = feature.rawValue.prefix(1).uppercased() + feature.rawValue.dropFirst()
    return HTTPResponse(
      403,
      json: [
        "status": 403,
        "error": [
          "message": .string("\(name) is not available on this server"),
          "source": .string(feature.source),
        ],
      ])
  }

  /// The answer to a path that is none of the API.
  static let notFound = HTTPResponse(
    404, json: ["message": "Not found", "error": 1, "service": "Presence", "status": 404])

  /// The answer to a presence call that changed what it named.
  static func presence(_ members: [JSONMember] = []) -> HTTPResponse {
    HTTPResponse(
      json: .object(
        [JSONMember("status", 200), JSONMember("message", "OK")] + members
          + [JSONMember("service", "Presence")]))
  }

  /// The answer to a presence call, with the members as JSON text.
  static func presence(json members: [UInt8]) -> HTTPResponse {
    HTTPResponse(
      200, #"{"status":200,"message":"OK","#.utf8 + members + #","service":"Presence"}"#.utf8)
  }

  /// The answer to a call of channel groups.
  static func groups(_ payload: JSONValue? = nil) -> HTTPResponse {
    let head = [JSONMember("status", 200), JSONMember("message", "OK")]
    let tail = [JSONMember("service", "channel-registry"), JSONMember("error", false)]
    let members = head + (payload.map { [JSONMember("payload", $0)] } ?? []) + tail
    return HTTPResponse(json: .object(members))
  }
}

extension PubNubRefusal {
  /// The answer, with the place that a publisher's error has.
  func response(at place: Timetoken) -> HTTPResponse {
    var response = HTTPResponse(status, json: body(at: place))
    // A client that must wait is told how long.
    if status == 429 || status == 503 { response.retryAfter = 1 }
    return response
  }

  private func body(at place: Timetoken) -> JSONValue {
    let text = JSONValue.string(message)
    let number = JSONValue.integer(Int64(status))
    return switch family {
    case .publish: [0, text, .string(place.description)]
    case .presence: ["status": number, "error": 1, "message": text, "service": "Presence"]
    case .history:
      ["status": number, "error": true, "error_message": text, "channels": .object([])]
    case .groups:
      ["status": number, "message": text, "service": "channel-registry", "error": true]
    case .subscribe, .access:
      ["message": text, "error": true, "service": "Access Manager", "status": number]
    }
  }
}

/// JSON that is written element by element, with a comma before each but the first.
struct JSONListBuilder {
  var bytes: [UInt8]
  private var isEmpty = true

  init(_ beginning: StaticString) { bytes = Array("\(beginning)".utf8) }

  mutating func beginElement() {
    if !isEmpty { bytes.append(UInt8(ascii: ",")) }
    isEmpty = false
  }

  /// Appends a member of an object, whose value follows.
  mutating func beginMember(_ name: String) {
    beginElement()
    JSONText.append(quoting: name, to: &bytes)
    bytes.append(UInt8(ascii: ":"))
  }
}
