internal import StrictJSON

extension PubNubClient {
  /// Who is present on a channel.
  public struct Occupancy: Sendable, Hashable {
    /// How many users are present.
    public let count: Int
    /// The users; empty if the server does not name them.
    public let userIDs: [String]
  }

  /// Who is present on channels.
  ///
  /// - Returns: the channels on which someone is.
  public func hereNow(
    on channels: [String]
  ) async throws(MessagingClientError) -> [String: Occupancy] {
    let target = RequestTarget(
      path: "/v2/presence/sub-key/\(encodedKey)/channel/\(Self.list(channels))")
    let value = try object(try await call(target), "who is present is not known")
    func occupancy(_ value: JSONValue) -> Occupancy {
      Occupancy(
        count: Int(clamping: value.member("occupancy")?.integer ?? 0),
        userIDs: value.member("uuids")?.elements?.compactMap {
          $0.string ?? $0.member("uuid")?.string
        } ?? [])
    }
    guard let members = value.member("payload")?.member("channels")?.members else {
      let one = occupancy(value)
      return one.count == 0 ? [:] : [channels.first ?? "": one]
    }
    return Dictionary(
      members.map { ($0.name, occupancy($0.value)) }, uniquingKeysWith: { first, _ in first })
  }

  /// The channels on which a user is present; nil for the client's own user.
  public func whereNow(_ userID: String? = nil) async throws(MessagingClientError) -> [String] {
    let target = target(
      "v2", "presence", "sub-key", configuration.subscribeKey, "uuid",
      userID ?? configuration.userID)
    let value = try object(try await call(target), "where a user is present is not known")
    return value.member("payload")?.member("channels")?.elements?.compactMap(\.string) ?? []
  }

  /// Sets the user's state on channels, which lasts as long as the user is present.
  ///
  /// - Parameter state: the JSON text of an object.
  public func setState(_ state: String, on channels: [String]) async throws(MessagingClientError) {
    let user = RequestTarget.encode(configuration.userID)
    var target = RequestTarget(
      path: "/v2/presence/sub-key/\(encodedKey)/channel/\(Self.list(channels))/uuid/\(user)/data")
    target.add("state", state)
    _ = try object(try await call(target), "the state was not set")
  }

  /// The JSON text of a user's state on a channel; nil if there is none.
  public func state(
    of userID: String? = nil, on channel: String
  ) async throws(MessagingClientError) -> String? {
    let target = target(
      "v2", "presence", "sub-key", configuration.subscribeKey, "channel", channel, "uuid",
      userID ?? configuration.userID)
    let value = try object(try await call(target), "the state is not known")
    return value.member("payload").flatMap { $0.members?.isEmpty == false ? $0.text : nil }
  }

  // MARK: - Groups

  /// Adds channels to a group.
  public func add(
    _ channels: [String], toGroup group: String
  ) async throws(MessagingClientError) {
    try await change(group, "add", channels)
  }

  /// Removes channels from a group.
  public func remove(
    _ channels: [String], fromGroup group: String
  ) async throws(MessagingClientError) {
    try await change(group, "remove", channels)
  }

  private func change(
    _ group: String, _ change: String, _ channels: [String]
  ) async throws(MessagingClientError) {
    var target = groupTarget(group)
    target.add(change, channels.joined(separator: ","))
    _ = try object(try await call(target), "the group was not changed")
  }

  /// The channels of a group.
  public func channels(ofGroup group: String) async throws(MessagingClientError) -> [String] {
    let value = try object(try await call(groupTarget(group)), "the group is not known")
    return value.member("payload")?.member("channels")?.elements?.compactMap(\.string) ?? []
  }

  /// Removes a group with all its channels.
  public func removeGroup(_ group: String) async throws(MessagingClientError) {
    let target = target(
      "v1", "channel-registration", "sub-key", configuration.subscribeKey, "channel-group", group,
      "remove")
    _ = try object(try await call(target), "the group was not removed")
  }

  private func groupTarget(_ group: String) -> RequestTarget {
    target(
      "v1", "channel-registration", "sub-key", configuration.subscribeKey, "channel-group", group)
  }
}
