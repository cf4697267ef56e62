public import Foundation
internal import StrictJSON

/// An audit of version 2: `GET /v2/auth/audit/sub-key/{sub}?auth&channel&channel-group`.
///
/// The index has hashes of auth keys. So an answer shows the auth keys that the call names, and
/// lists no others.
public struct AuditQuery: Sendable, Hashable {
  private let items: NamedItems

  /// Reads the query of a call.
  ///
  /// - Throws: the answer to the call.
  public init(_ request: RawRequest) throws(AccessReply) { items = try NamedItems(request) }

  /// PubNub's answer: the rights that hold now, each with its lifetime in minutes.
  ///
  /// - Throws: an error of OpenSSL.
  public func reply(
    from index: AccessIndex, of application: Application, hashedBy hasher: AuthKeyHasher,
    at now: Date
  ) throws -> AccessReply {
    var holders: [String: GrantHolder] = [:]
    for authKey in items.authKeys {
      holders[authKey] = .authKey(try hasher.hash(Array(authKey.utf8), of: application.id))
    }
    var held: [Grant.Key: Grant] = [:]
    for holder in holders.isEmpty ? [GrantHolder.everyone] : Array(holders.values) {
      for grant in index.grants(of: application.id, holder: holder)
      where grant.end.map({ now < $0 }) ?? true { held[grant.key] = grant }
    }
    func entry(_ scope: Scope, _ authKey: String?, isWhole: Bool) -> [JSONMember] {
      let holder = authKey.flatMap { holders[$0] } ?? .everyone
      let grant = held[Grant.Key(scope, of: application.id, holder: holder)]
      let flags = GrantQuery.members(grant?.rights ?? [], isWhole: isWhole)
      return flags + (grant.map { [JSONMember("ttl", .integer(Int64($0.minutes)))] } ?? [])
    }
    let head = [
      JSONMember("level", .string(items.level)),
      JSONMember("subscribe_key", .string(application.subscribeKey)),
    ]
    if items.level == "subkey" {
      return .success(
        head + entry(.application, nil, isWhole: true)
          + everything(held.values) { entry($0, $1, isWhole: $2) })
    }
    return .success(head + AccessPayload(items).members { entry($0, $1, isWhole: false) })
  }

  /// Every channel and group of the application that everyone has a right on, sorted by name.
  private func everything(
    _ grants: some Collection<Grant>, _ entry: (Scope, String?, Bool) -> [JSONMember]
  ) -> [JSONMember] {
    var channels: [JSONMember] = []
    var groups: [JSONMember] = []
    for grant in grants {
      let members = JSONValue.object(entry(grant.key.scope, nil, false))
      switch grant.key.scope {
      case .channel(let name): channels.append(JSONMember(name.text, members))
      case .group(let name): groups.append(JSONMember(name.text, members))
      case .application, .consumer, .user: break
      }
    }
    return [
      JSONMember("channels", .object(channels.sorted { $0.name < $1.name })),
      JSONMember("channel-groups", .object(groups.sorted { $0.name < $1.name })),
    ]
  }
}
