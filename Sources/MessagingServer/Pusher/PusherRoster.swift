internal import StrictJSON

/// Who is present on a presence channel: each user once, with any number of connections.
struct PusherRoster: Sendable, Equatable {
  /// The most users.
  static let maximumCount = 100

  private struct Entry: Equatable {
    let member: PusherMember
    var connectionCount: Int
  }

  private var entries: [Entry] = []

  init() {}

  var count: Int { entries.count }
  var userIDs: [String] { entries.map(\.member.id) }

  /// Adds a connection of a user, whose `user_info` stays that of the first one.
  ///
  /// - Returns: whether the user is new.
  /// - Throws: ``PusherRefusal`` for a new user of a full channel.
  mutating func add(_ member: PusherMember) throws(PusherRefusal) -> Bool {
    if let index = index(of: member.id) {
      entries[index].connectionCount += 1
      return false
    }
    guard count < Self.maximumCount else {
      throw .limit("the channel has \(Self.maximumCount) members")
    }
    entries.append(Entry(member: member, connectionCount: 1))
    return true
  }

  /// Removes a connection of a user.
  ///
  /// - Returns: whether it was the last one.
  mutating func remove(_ userID: String) -> Bool {
    guard let index = index(of: userID) else { return false }
    entries[index].connectionCount -= 1
    guard entries[index].connectionCount == 0 else { return false }
    entries.remove(at: index)
    return true
  }

  /// Ids are compared by their bytes.
  private func index(of userID: String) -> Int? {
    entries.firstIndex { $0.member.id.utf8.elementsEqual(userID.utf8) }
  }

  /// The members as JSON: `{"presence":{"ids":[...],"hash":{...},"count":1}}`.
  var json: String {
    var ids: [UInt8] = []
    var hash: [UInt8] = []
    for entry in entries {
      if !ids.isEmpty {
        ids.append(UInt8(ascii: ","))
        hash.append(UInt8(ascii: ","))
      }
      JSONText.append(quoting: entry.member.id, to: &ids)
      JSONText.append(quoting: entry.member.id, to: &hash)
      hash.append(UInt8(ascii: ":"))
      hash += entry.member.info
    }
    let json =
      Array(#"{"presence":{"ids":["#.utf8) + ids + #"],"hash":{"#.utf8 + hash
      + #"},"count":\#(count)}}"#.utf8
    return String(decoding: json, as: UTF8.self)
  }
}
