internal import NIOHTTP1
internal import StrictJSON
public import VaultCrypto

/// Rights on channels and groups, as PubNub's access manager has them.
public struct PubNubRights: OptionSet, Sendable, Hashable {
  /// The bits of PubNub's tokens.
  public let rawValue: Int

  /// Makes rights of the bits of PubNub's tokens.
  public init(rawValue: Int) { self.rawValue = rawValue }

  /// Subscribe, history, presence.
  public static let read = PubNubRights(rawValue: 1)
  /// Publish and signal.
  public static let write = PubNubRights(rawValue: 2)
  /// Change groups.
  public static let manage = PubNubRights(rawValue: 4)
  /// Delete messages.
  public static let delete = PubNubRights(rawValue: 8)

  fileprivate static let flags: [(name: String, right: PubNubRights)] = [
    ("r", .read), ("w", .write), ("m", .manage), ("d", .delete),
  ]
}

/// What a token of version 3 of the access manager allows.
public struct PubNubTokenRequest: Sendable {
  /// How long the token is good: whole minutes, 1 to 43,200.
  public var lifetime: Duration
  /// The user whose requests can have it; nil for all.
  public var userID: String?
  /// Rights on channels by their names.
  public var channels: [String: PubNubRights] = [:]
  /// Rights on groups by their names.
  public var groups: [String: PubNubRights] = [:]
  /// Regular expressions for the names of channels.
  public var channelPatterns: [String: PubNubRights] = [:]
  /// Regular expressions for the names of groups.
  public var groupPatterns: [String: PubNubRights] = [:]

  /// Makes a request for a token without rights.
  public init(lifetime: Duration) { self.lifetime = lifetime }
}

// Who has the secret key grants, audits and revokes.
extension PubNubClient {
  /// Grants rights to auth keys (version 2 of the access manager); a grant replaces an earlier one.
  ///
  /// - Parameters:
  ///   - authKeys: if there is none, everyone gets the rights.
  ///   - lifetime: whole minutes, at least one; nil for ever.
  /// - Throws: `invalidArgument` without a secret key, or for less than a minute; `forbidden`, `refused`, `busy`, and the
  ///   errors of the connection.
  public func grant(
    _ rights: PubNubRights, channels: [String] = [], groups: [String] = [],
    authKeys: [SharedSecret] = [], lifetime: Duration?
  ) async throws(MessagingClientError) {
    // PubNub reads 0 minutes as for ever.
    guard lifetime.map({ Self.minutes($0) > 0 }) ?? true else {
      throw MessagingClientError(
        .invalidArgument, "the lifetime of a grant is less than a minute",
        hint: "give whole minutes, or nil for ever")
    }
    var target = try accessTarget("grant", channels, groups, authKeys)
    for flag in PubNubRights.flags {
      target.add(flag.name, rights.contains(flag.right) ? "1" : "0")
    }
    target.add("ttl", "\(lifetime.map(Self.minutes) ?? 0)")
    _ = try object(try await call(target, hasAuthKey: false), "the rights were not granted")
  }

  /// Revokes all rights of auth keys on channels and groups.
  public func revoke(
    channels: [String] = [], groups: [String] = [], authKeys: [SharedSecret] = []
  ) async throws(MessagingClientError) {
    try await grant([], channels: channels, groups: groups, authKeys: authKeys, lifetime: nil)
  }

  /// The JSON text of what is granted on channels and groups, and to auth keys.
  public func audit(
    channels: [String] = [], groups: [String] = [], authKeys: [SharedSecret] = []
  ) async throws(MessagingClientError) -> String {
    let target = try accessTarget("audit", channels, groups, authKeys)
    let value = try object(
      try await call(target, hasAuthKey: false), "the rights were not read")
    return (value.member("payload") ?? value).text
  }

  /// Makes a token (version 3 of the access manager).
  public func grantToken(
    _ request: PubNubTokenRequest
  ) async throws(MessagingClientError) -> SecretBytes {
    try requireSecretKey()
    func map(_ rights: [String: PubNubRights]) -> JSONValue {
      .object(
        rights.sorted { $0.key < $1.key }.map {
          JSONMember($0.key, .integer(Int64($0.value.rawValue)))
        })
    }
    var permissions: [JSONMember] = [
      JSONMember("resources", ["channels": map(request.channels), "groups": map(request.groups)]),
      JSONMember(
        "patterns",
        ["channels": map(request.channelPatterns), "groups": map(request.groupPatterns)]),
      JSONMember("meta", .object([])),
    ]
    if let userID = request.userID { permissions.append(JSONMember("uuid", .string(userID))) }
    let body: JSONValue = [
      "ttl": .integer(Self.minutes(request.lifetime)), "permissions": .object(permissions),
    ]
    let response = try await call(
      target("v3", "pam", configuration.subscribeKey, "grant"), method: .POST,
      body: Array(body.text.utf8),
      headers: [("Content-Type", "application/json")])
    let value = try object(response, "the token was not made")
    guard let token = value.member("data")?.member("token")?.string else {
      throw MessagingClientError(.invalidAnswer, "the answer to a grant has no token")
    }
    return SecretBytes(copying: Array(token.utf8))
  }

  /// Revokes a token.
  public func revokeToken(_ token: borrowing SecretBytes) async throws(MessagingClientError) {
    try requireSecretKey()
    var target = target("v3", "pam", configuration.subscribeKey, "grant")
    target.append(confidential: SharedSecret(copying: token))
    _ = try object(try await call(target, method: .DELETE), "the token was not revoked")
  }

  private func accessTarget(
    _ call: String, _ channels: [String], _ groups: [String], _ authKeys: [SharedSecret]
  ) throws(MessagingClientError) -> RequestTarget {
    try requireSecretKey()
    var target = target("v2", "auth", call, "sub-key", configuration.subscribeKey)
    if !authKeys.isEmpty { target.add("auth", SharedSecret(list: authKeys)) }
    if !channels.isEmpty { target.add("channel", channels.joined(separator: ",")) }
    if !groups.isEmpty { target.add("channel-group", groups.joined(separator: ",")) }
    return target
  }

  private func requireSecretKey() throws(MessagingClientError) {
    guard configuration.secretKey != nil else {
      throw MessagingClientError(
        .invalidArgument, "the client has no secret key",
        hint: "only a server of the application has it")
    }
  }

  private static func minutes(_ duration: Duration) -> Int64 { duration.components.seconds / 60 }
}
