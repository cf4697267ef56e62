/// A call of the access manager, told by its method and path.
public enum AccessManagerCall: Sendable, Hashable {
  /// Grant or revoke, version 2.
  case grant
  /// Audit, version 2.
  case audit
  /// Make a token, version 3.
  case grantToken
  /// Revoke a token, version 3.
  ///
  /// - Parameters:
  ///   - text: the token, percent-decoded.
  case revokeToken(text: [UInt8])

  /// The call of a request, and the subscribe key in its path; nil if it is another call.
  ///
  /// Ruby 4 writes `/v1/auth` for `/v2/auth`.
  public static func of(
    _ request: RawRequest
  ) -> (call: AccessManagerCall, subscribeKey: String)? {
    let segments = request.segments
    let names = segments.map { String(decoding: $0, as: UTF8.self) }
    if names.count == 5, ["v1", "v2"].contains(names[0]), names[1] == "auth",
      names[3] == "sub-key", request.method == "GET"
    {
      switch names[2] {
      case "grant": return (.grant, names[4])
      case "audit": return (.audit, names[4])
      default: return nil
      }
    }
    guard names.count >= 4, names[0] == "v3", names[1] == "pam", names[3] == "grant" else {
      return nil
    }
    switch (request.method, names.count) {
    case ("POST", 4): return (.grantToken, names[2])
    case ("DELETE", 5): return (.revokeToken(text: segments[4]), names[2])
    default: return nil
    }
  }
}

/// The names in a call of version 2.
struct NamedItems: Sendable, Hashable {
  /// The most grants that one call makes.
  static let maximumGrantCount = 1000

  let channels: [ChannelName]
  let groups: [GroupName]
  let users: [Name]
  let authKeys: [String]

  init(_ request: RawRequest) throws(AccessReply) {
    channels = try Self.names("channel", in: request) { (text) throws(AccessError) in
      try ChannelName(text)
    }
    groups = try Self.names("channel-group", in: request) { (text) throws(AccessError) in
      try GroupName(text)
    }
    users = try Self.names("target-uuid", in: request) { (text) throws(AccessError) in
      try Name(text)
    }
    authKeys = try Self.names("auth", in: request) { (text) throws(AccessError) in
      guard text.utf8.count <= AuthKeyHasher.maximumByteCount else {
        throw AccessError(.invalidName, "an auth key is too long")
      }
      return text
    }
    let nameCount = max(1, channels.count + groups.count + users.count)
    guard nameCount * max(1, authKeys.count) <= Self.maximumGrantCount else {
      throw .invalidArguments("at most \(Self.maximumGrantCount) grants in a call")
    }
    let hasNames = !channels.isEmpty || !groups.isEmpty || !users.isEmpty
    guard hasNames || authKeys.isEmpty else {
      throw .invalidArguments("auth needs channel, channel-group or target-uuid")
    }
    guard users.isEmpty || !authKeys.isEmpty else {
      throw .invalidArguments("target-uuid needs auth")
    }
    guard users.isEmpty || channels.isEmpty && groups.isEmpty else {
      throw .invalidArguments("target-uuid excludes channel and channel-group")
    }
  }

  /// The scopes that are named; the application if there is none.
  var scopes: [Scope] {
    let named =
      channels.map { Scope.channel($0) } + groups.map { Scope.group($0) }
      + users.map { Scope.user($0) }
    return named.isEmpty ? [.application] : named
  }

  /// The level that PubNub's answers name.
  var level: String {
    if !users.isEmpty { return "uuid" }
    if !channels.isEmpty { return authKeys.isEmpty ? "channel" : "user" }
    if !groups.isEmpty { return authKeys.isEmpty ? "channel-group" : "channel-group+auth" }
    return "subkey"
  }

  /// The names of a list, which is decoded first and split at its commas then.
  private static func names<N: Hashable>(
    _ parameter: StaticString, in request: RawRequest,
    _ check: (String) throws(AccessError) -> N
  ) throws(AccessReply) -> [N] {
    guard let list = request.value(parameter) else { return [] }
    var names: [N] = []
    var seen: Set<N> = []
    for piece in list.split(separator: UInt8(ascii: ",")) {
      guard let text = String(validating: piece, as: UTF8.self), let name = try? check(text) else {
        throw .invalidArguments("a name in \(parameter) is not valid")
      }
      if seen.insert(name).inserted { names.append(name) }
    }
    return names
  }
}
