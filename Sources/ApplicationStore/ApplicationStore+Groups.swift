package import AccessControl
internal import GRDB

/// Channel groups: named sets of channels, which exist while they have a channel.
extension ApplicationStore {
  /// Adds channels to a group; those that are in it stay.
  ///
  /// - Throws: `reservedName` for `:`, a presence channel as the group, or a pattern as a channel;
  ///   `unknownApplication`, `tooManyGroups`, `tooManyChannels`, `newerVersion`, `engine`. Nothing
  ///   is added then.
  package func add(
    _ channels: [ChannelName], to group: GroupName, of id: ApplicationID
  ) async throws(ApplicationStoreError) {
    guard group != .all, !group.isPresence, !channels.contains(where: \.isPattern) else {
      throw ApplicationStoreError(
        .reservedName, "this channel group, or a channel for it, has a reserved name",
        hint: "a group is not ':' and ends with no '-pnpres', and a channel is not a pattern")
    }
    if channels.isEmpty { return }
    try await change("adding to a channel group") { [limits] db, changes in
      let row = try ApplicationRow.require(id, db)
      let before = try Self.channelCount(group, of: id, db)
      for channel in channels {
        try db.run(
          "INSERT OR IGNORE INTO application_group VALUES (?, ?, ?)", id.number, group.text,
          channel.text)
      }
      let gain = try Self.channelCount(group, of: id, db) - before
      if gain == 0 { return }
      try Self.count(groups: before == 0 ? 1 : 0, channels: gain, of: id, db)
      let total = try db.number("SELECT sum(member_count) FROM application") ?? 0
      guard before > 0 || row.groupCount < limits.groupCount else {
        throw ApplicationStoreError(
          .tooManyGroups,
          "application '\(row.record.name)' already has \(limits.groupCount) channel groups",
          hint: "remove one that is not used")
      }
      guard before + gain <= limits.groupChannelCount, row.memberCount + gain <= limits.memberCount,
        total <= limits.totalMemberCount
      else {
        throw ApplicationStoreError(
          .tooManyChannels,
          "a channel group of application '\(row.record.name)' would have more than "
            + "\(limits.groupChannelCount) channels, or all groups too many",
          hint: "remove channels, or use more groups")
      }
      changes = [.group(group, of: id)]
    }
  }

  /// Removes channels from a group; those that are not in it do not matter.
  ///
  /// - Throws: `unknownApplication`, `newerVersion`, `engine`.
  package func remove(
    _ channels: [ChannelName], from group: GroupName, of id: ApplicationID
  ) async throws(ApplicationStoreError) {
    try await change("removing from a channel group") { db, changes in
      _ = try ApplicationRow.require(id, db)
      var count = 0
      for channel in channels {
        try db.run(
          "DELETE FROM application_group WHERE application_id = ? AND name = ? AND channel = ?",
          id.number, group.text, channel.text)
        count += db.changesCount
      }
      if count == 0 { return }
      let left = try Self.channelCount(group, of: id, db)
      try Self.count(groups: left == 0 ? -1 : 0, channels: -count, of: id, db)
      changes = [.group(group, of: id)]
    }
  }

  /// Removes a group; one that does not exist does not matter.
  ///
  /// - Throws: `unknownApplication`, `newerVersion`, `engine`.
  package func removeGroup(
    _ group: GroupName, of id: ApplicationID
  ) async throws(ApplicationStoreError) {
    try await change("removing a channel group") { db, changes in
      _ = try ApplicationRow.require(id, db)
      try db.run(
        "DELETE FROM application_group WHERE application_id = ? AND name = ?", id.number,
        group.text)
      let count = db.changesCount
      if count == 0 { return }
      try Self.count(groups: -1, channels: -count, of: id, db)
      changes = [.group(group, of: id)]
    }
  }

  /// The groups of an application with their channels.
  ///
  /// - Throws: `unknownApplication`, `damaged`, `newerVersion`, `engine`.
  package func groups(
    of id: ApplicationID
  ) async throws(ApplicationStoreError) -> [GroupName: Set<ChannelName>] {
    try await read("listing channel groups") { db in
      _ = try ApplicationRow.require(id, db)
      return try Self.groups(of: id, db)
    }
  }

  // MARK: - Rows

  static func groups(
    of id: ApplicationID, _ db: Database
  ) throws -> [GroupName: Set<ChannelName>] {
    var groups: [GroupName: Set<ChannelName>] = [:]
    let rows = try db.rows(
      "SELECT name, channel FROM application_group WHERE application_id = ?", id.number)
    while let row = try rows.next() {
      guard let group = try? GroupName(row[0]), let channel = try? ChannelName(row[1]) else {
        throw ApplicationStoreError.damaged("a channel group", of: id)
      }
      groups[group, default: []].insert(channel)
    }
    return groups
  }

  static func channels(
    of group: GroupName, of id: ApplicationID, _ db: Database
  ) throws -> Set<ChannelName> {
    var channels: Set<ChannelName> = []
    let rows = try db.rows(
      "SELECT channel FROM application_group WHERE application_id = ? AND name = ?", id.number,
      group.text)
    while let row = try rows.next() {
      guard let channel = try? ChannelName(row[0]) else {
        throw ApplicationStoreError.damaged("a channel group", of: id)
      }
      channels.insert(channel)
    }
    return channels
  }

  private static func channelCount(
    _ group: GroupName, of id: ApplicationID, _ db: Database
  ) throws -> Int {
    let count = try db.number(
      "SELECT count(*) FROM application_group WHERE application_id = ? AND name = ?", id.number,
      group.text)
    return Int(count ?? 0)
  }

  private static func count(
    groups: Int, channels: Int, of id: ApplicationID, _ db: Database
  ) throws {
    try db.run(
      """
      UPDATE application SET group_count = group_count + ?, member_count = member_count + ?
      WHERE id = ?
      """, groups, channels, id.number)
  }
}
