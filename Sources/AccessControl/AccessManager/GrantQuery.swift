public import Foundation
internal import StrictJSON

/// A grant of version 2: `GET /v2/auth/grant/sub-key/{sub}?auth&channel&channel-group&r&w&ttl...`.
///
/// It names channels, groups or users, and auth keys, and gives each pair the same rights. Without
/// names, it is a grant on the application. A revocation is a grant without rights.
public struct GrantQuery: Sendable, Hashable {
  /// The lifetime of a grant that names none, in minutes.
  public static let standardMinutes = 1440

  /// The rights and their flags in a query, in the order of PubNub's answers.
  static let flags: [(name: StaticString, right: Rights)] = [
    ("r", .read), ("w", .write), ("m", .manage), ("d", .delete), ("g", .get), ("u", .update),
    ("j", .join),
  ]

  private let items: NamedItems

  /// The rights that every entry gets.
  public let rights: Rights

  /// The lifetime in minutes; 0 is for ever.
  public let minutes: Int

  /// Reads the query of a call.
  ///
  /// - Throws: the answer to the call.
  public init(_ request: RawRequest) throws(AccessReply) {
    guard request.value("category") == nil else {
      throw .invalidArguments("category is not available on this server")
    }
    items = try NamedItems(request)
    var rights: Rights = []
    for flag in Self.flags {
      switch request.value(flag.name).map({ String(decoding: $0, as: UTF8.self) }) {
      case nil, "0", "false": break
      case "1", "true": rights.insert(flag.right)
      default: throw .invalidArguments("\(flag.name) is 0 or 1")
      }
    }
    self.rights = rights
    // PubNub's answer to a revocation without a lifetime says 1.
    let standard = rights.isEmpty ? 1 : Self.standardMinutes
    switch request.value("ttl").map({ String(decoding: $0, as: UTF8.self) }) {
    // Go sends -1 for a lifetime that its caller did not give.
    case nil, "", "-1": minutes = standard
    case .some(let text):
      guard text.utf8.allSatisfy(\.isDigit), let number = Int(text),
        number <= Grant.maximumMinutes
      else { throw .invalidArguments("ttl is 0 to \(Grant.maximumMinutes) minutes") }
      minutes = number
    }
  }

  /// The grants to store; those without rights remove entries.
  ///
  /// - Throws: an error of OpenSSL.
  public func grants(
    of application: ApplicationID, hashedBy hasher: AuthKeyHasher, start: Date
  ) throws -> [Grant] {
    var holders: [GrantHolder] = []
    for authKey in items.authKeys {
      holders.append(.authKey(try hasher.hash(Array(authKey.utf8), of: application)))
    }
    if holders.isEmpty { holders = [.everyone] }
    return try items.scopes.flatMap { scope in
      try holders.map { holder in
        try Grant(
          rights, on: Grant.Key(scope, of: application, holder: holder), minutes: minutes,
          start: start)
      }
    }
  }

  /// PubNub's answer to the call, after the grants were stored.
  public func reply(subscribeKey: String) -> AccessReply {
    var payload: [JSONMember] = [
      JSONMember("level", .string(items.level)),
      JSONMember("subscribe_key", .string(subscribeKey)),
      JSONMember("ttl", .integer(Int64(minutes))),
    ]
    if items.level == "subkey" {
      payload += Self.members(rights, isWhole: true)
    } else {
      payload += AccessPayload(items).members { _, _ in Self.members(rights, isWhole: false) }
    }
    return .success(payload)
  }

  /// The flags of rights.
  ///
  /// - Parameters:
  ///   - isWhole: whether `g`, `u` and `j` are there even if none of them is set, as in PubNub's
  ///     answers about a whole application.
  static func members(_ rights: Rights, isWhole: Bool) -> [JSONMember] {
    let isLong = isWhole || !rights.isDisjoint(with: [.get, .update, .join])
    return flags.prefix(isLong ? 7 : 4).map { flag in
      JSONMember("\(flag.name)", rights.contains(flag.right) ? 1 : 0)
    }
  }
}

/// The part of an answer that lists names and auth keys, in the forms that PubNub uses for one and
/// for several of them.
struct AccessPayload {
  private let items: NamedItems

  init(_ items: NamedItems) { self.items = items }

  /// The members for all names.
  ///
  /// - Parameters:
  ///   - entry: the members of the entry for a scope and an auth key, or nil for everyone's.
  func members(_ entry: (Scope, String?) -> [JSONMember]) -> [JSONMember] {
    let isSingle = items.channels.count + items.groups.count == 1 && !items.authKeys.isEmpty
    var members: [JSONMember] = []
    if isSingle, let channel = items.channels.first {
      members.append(JSONMember("channel", .string(channel.text)))
      members.append(auths(.channel(channel), entry))
    } else if isSingle, let group = items.groups.first {
      members.append(JSONMember("channel-groups", .string(group.text)))
      members.append(auths(.group(group), entry))
    } else {
      let channels = items.channels.map { ($0.text, Scope.channel($0)) }
      let groups = items.groups.map { ($0.text, Scope.group($0)) }
      if !channels.isEmpty { members.append(map("channels", channels, entry)) }
      if !groups.isEmpty { members.append(map("channel-groups", groups, entry)) }
    }
    if !items.users.isEmpty {
      members.append(map("uuids", items.users.map { ($0.text, Scope.user($0)) }, entry))
    }
    return members
  }

  private func map(
    _ name: String, _ scopes: [(String, Scope)], _ entry: (Scope, String?) -> [JSONMember]
  ) -> JSONMember {
    let entries = scopes.map { text, scope in
      let members = items.authKeys.isEmpty ? entry(scope, nil) : [auths(scope, entry)]
      return JSONMember(text, .object(members))
    }
    return JSONMember(name, .object(entries))
  }

  private func auths(_ scope: Scope, _ entry: (Scope, String?) -> [JSONMember]) -> JSONMember {
    let entries = items.authKeys.map { JSONMember($0, .object(entry(scope, $0))) }
    return JSONMember("auths", .object(entries))
  }
}
