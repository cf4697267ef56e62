public import StrictJSON

/// An answer of the access manager in PubNub's shape: a status and a JSON body.
///
/// A refusal is thrown, because it ends the call.
public struct AccessReply: Error, Sendable, Hashable {
  /// The status of HTTP.
  public let status: Int

  /// The body.
  public let body: JSONValue

  /// The body as text; PubNub ends that of a refusal with a newline.
  public var text: String { status == 403 ? body.text + "\n" : body.text }

  private init(_ status: Int, _ body: JSONValue) {
    self.status = status
    self.body = body
  }

  private static let service = JSONMember("service", "Access Manager")

  // MARK: - Success

  /// The answer to a grant or an audit of version 2.
  static func success(_ payload: [JSONMember]) -> AccessReply {
    AccessReply(
      200,
      .object([
        JSONMember("message", "Success"), JSONMember("payload", .object(payload)), service,
        JSONMember("status", 200),
      ]))
  }

  /// The answer to a grant of version 3.
  public static func token(_ token: String) -> AccessReply {
    AccessReply(
      200,
      [
        "data": ["message": "Success", "token": .string(token)], "service": "Access Manager",
        "status": 200,
      ])
  }

  /// The answer to the revocation of a token.
  public static let tokenRevocation = AccessReply(
    200, ["data": ["message": "Success"], "service": "Access Manager", "status": 200])

  // MARK: - Refusals of calls for data

  /// Names that the caller has no right to; list only those.
  ///
  /// PubNub writes a colon before the name of a group.
  public static func forbidden(
    channels: [ChannelName] = [], groups: [GroupName] = []
  ) -> AccessReply {
    var payload: [JSONMember] = []
    if !channels.isEmpty {
      payload.append(JSONMember("channels", .array(channels.map { .string($0.text) })))
    }
    if !groups.isEmpty {
      payload.append(
        JSONMember("channel-groups", .array(groups.map { .string(":" + $0.text) })))
    }
    return AccessReply(
      403,
      .object([
        JSONMember("message", "Forbidden"), JSONMember("payload", .object(payload)),
        JSONMember("error", true), service, JSONMember("status", 403),
      ]))
  }

  /// A token that was revoked.
  public static let tokenIsRevoked = AccessReply(403, refusal(403, "Token is revoked"))

  /// A token that has ended.
  public static let tokenIsExpired = AccessReply(403, refusal(403, "Token is expired"))

  /// A signature whose timestamp is missing, or more than 60 seconds from the server's time.
  public static let invalidTimestamp = AccessReply(400, refusal(400, "Invalid Timestamp"))

  /// A signature that does not verify, or none where one is needed.
  public static let invalidSignature = AccessReply(403, refusal(403, "Invalid Signature"))

  /// Credentials of HTTP that are missing or wrong; the response carries challenges.
  public static let unauthorized = AccessReply(401, refusal(401, "Unauthorized"))

  /// A password or a token that others on the way could read.
  public static let unprotectedLogin = AccessReply(
    403, refusal(403, "Credentials are taken over TLS only"))

  /// A call of version 2 that says nothing that can be granted.
  static func invalidArguments(_ what: String) -> AccessReply {
    AccessReply(400, refusal(400, "Invalid Arguments: \(what)"))
  }

  private static func refusal(_ status: Int64, _ message: String) -> JSONValue {
    [
      "error": true, "status": .integer(status), "service": "Access Manager",
      "message": .string(message),
    ]
  }

  // MARK: - Refusals of version 3

  /// A part of a call of version 3 that is not valid.
  static func invalid(
    _ part: String, of source: String, _ detail: String, at location: String, in kind: String
  ) -> AccessReply {
    AccessReply(
      400,
      [
        "error": [
          "message": .string("Invalid \(part)"), "source": .string(source),
          "details": [
            [
              "message": .string(detail), "location": .string(location),
              "locationType": .string(kind),
            ]
          ],
        ], "service": "Access Manager", "status": 400,
      ])
  }
}

extension Decision {
  /// The answer to a call that was refused for these names.
  public func reply(channels: [ChannelName] = [], groups: [GroupName] = []) -> AccessReply {
    switch reason {
    case .tokenRevoked: .tokenIsRevoked
    case .tokenExpired: .tokenIsExpired
    case .needsSignature: .invalidSignature
    default: .forbidden(channels: channels, groups: groups)
    }
  }
}
