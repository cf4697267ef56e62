package import MessagingQueue

/// The channels of a group, shared by all subscriptions to it.
package final class ChannelGroup: Sendable {
  package let name: String
  let channels: Set<Channel>

  /// - Parameter channels: of a group `g-pnpres`, the presence channels of the members of `g`.
  package init(_ name: String, _ channels: Set<Channel>) {
    self.name = name
    self.channels = channels
  }
}

/// The channels, patterns and groups that one subscriber listens to.
///
/// Copies share their content, and subscriptions to a group its channels.
package struct Subscription: Sendable {
  /// Why an event reaches the subscriber.
  ///
  /// A direct subscription comes before a pattern, a pattern before a group.
  package enum Source: Sendable, Hashable {
    case channel
    /// The pattern, such as `application/a.*` or `application/a.*-pnpres`.
    case pattern(Channel)
    /// The name of the group.
    case group(String)
  }

  /// The channels and patterns that are subscribed to themselves.
  ///
  /// A topic is the name of a channel, or a pattern in the place of a name.
  let topics: Set<Channel>
  /// In the order of their names: of several groups with a channel, the first is its source.
  package let groups: [ChannelGroup]

  /// - Parameter channels: names of channels, and patterns. `a.*` stands for all names that begin with `a.`, except those
  ///   of presence; `a.*-pnpres` stands for the presence of all of them.
  package init(channels: some Sequence<Channel>, groups: [ChannelGroup] = []) {
    topics = Set(channels)
    self.groups = groups.sorted { $0.name < $1.name }
  }

  /// Why an event of these topics reaches the subscriber; nil if it does not.
  ///
  /// - Parameter topics: the event's own channel first.
  func source(of topics: [Channel]) -> Source? {
    if let topic = topics.first(where: self.topics.contains) {
      return topic.isPattern ? .pattern(topic) : .channel
    }
    return groups.first { !$0.channels.isDisjoint(with: topics) }.map { .group($0.name) }
  }

  /// The channels and prefixes to read from the log, which has no presence.
  var selection: ChannelSelection {
    var selection = ChannelSelection(channels: [])
    for group in groups {
      selection.channels.formUnion(group.channels.lazy.filter { !$0.isPresence })
    }
    for topic in topics where !topic.isPresence {
      if topic.isPattern {
        selection.prefixes.insert(String(topic.name.dropLast()))
      } else {
        selection.channels.insert(topic)
      }
    }
    return selection
  }
}

extension Channel {
  /// What the name of a channel with the presence of another one ends with.
  package static let presenceSuffix = "-pnpres"

  /// Whether its events are the presence of another channel, or of a pattern.
  package var isPresence: Bool { ends(with: Self.presenceSuffix) }

  /// Whether the name stands for all names that begin with the part before its star.
  var isPattern: Bool { ends(with: ".*") || ends(with: ".*" + Self.presenceSuffix) }

  /// Names are compared byte by byte; `hasSuffix` compares characters.
  private func ends(with suffix: String) -> Bool {
    name.utf8.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
  }

  /// The topics under which subscribers find an event of this channel: the channel first, then the patterns that it
  /// matches.
  ///
  /// The presence of `a.b` is found under `a.*-pnpres`, not under `a.*`. Two dots are the most that a name with
  /// patterns has.
  var topics: [Channel] {
    let suffix = isPresence ? Self.presenceSuffix : ""
    let base = name.utf8.dropLast(suffix.utf8.count)
    var topics = [self]
    var dotCount = 0
    for index in base.indices where base[index] == UInt8(ascii: ".") {
      // Only a name of almost the greatest length has no pattern. A pattern's own presence is already there.
      if let pattern = try? Channel(name[...index] + "*" + suffix), pattern != self {
        topics.append(pattern)
      }
      dotCount += 1
      if dotCount == 2 { break }
    }
    return topics
  }
}
