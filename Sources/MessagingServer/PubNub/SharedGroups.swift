internal import AccessControl
internal import ApplicationStore
internal import MessagingQueue
internal import Realtime
internal import Synchronization

/// The channels of groups as subscriptions have them, made once for all that wait.
final class SharedGroups: Sendable {
  /// From so many on, the groups that no subscription has are dropped.
  static let sweepCount = 10_000

  private struct Key: Hashable {
    let application: ApplicationID
    let name: GroupName
  }

  private struct Made {
    let members: Set<ChannelName>
    weak var group: ChannelGroup?
  }

  private let made = Mutex<[Key: Made]>([:])

  /// - Parameter members: of the group; of `NAME` for `NAME-pnpres`.
  func group(
    _ name: GroupName, _ members: Set<ChannelName>, of application: DirectoryEntry
  ) throws(PubNubRefusal) -> ChannelGroup {
    let key = Key(application: application.id, name: name)
    let known = made.withLock { made in
      // Two copies of one set are equal without a look at their elements.
      made[key].flatMap { $0.members == members ? $0.group : nil }
    }
    if let known { return known }
    let names = name.isPresence ? Set(members.compactMap(\.presenceChannel)) : members
    let group = ChannelGroup(name.text, Set(try application.channels(names, .subscribe)))
    made.withLock { made in
      if made.count >= Self.sweepCount { made = made.filter { $0.value.group != nil } }
      made[key] = Made(members: members, group: group)
    }
    return group
  }
}
