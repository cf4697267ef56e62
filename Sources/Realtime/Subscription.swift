package import MessagingQueue

/// The channels, patterns and groups that one subscriber listens to.
///
/// It has the size of one reference, and copies share their content.
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

  private var sources: [Channel: Source] = [:]

  /// - Parameters:
  ///   - channels: names of channels, and patterns. `a.*` stands for all names that begin with `a.`, except those of
  ///     presence; `a.*-pnpres` stands for the presence of all of them.
  ///   - groups: the members of each group. Presence comes through a group of its own: the members of `g-pnpres` are
  ///     the presence channels of the members of `g`.
  package init(channels: some Sequence<Channel>, groups: [String: Set<Channel>] = [:]) {
    // Of several groups with a member, the first by name is its source.
    for (name, members) in groups.sorted(by: { $0.key > $1.key }) {
      for member in members { sources[member] = .group(name) }
    }
    for channel in channels {
      sources[channel] = channel.isPattern ? .pattern(channel) : .channel
    }
  }

  /// A topic is the name of a channel, or a pattern in the place of a name.
  var topics: some Collection<Channel> { sources.keys }

  /// Why an event of these topics reaches the subscriber; nil if it does not.
  ///
  /// - Parameter topics: the event's own channel first.
  func source(of topics: [Channel]) -> Source? {
    var group: Source?
    for topic in topics {
      guard let source = sources[topic] else { continue }
      if case .group = source { group = group ?? source } else { return source }
    }
    return group
  }

  /// The channels and prefixes to read from the log, which has no presence.
  var selection: ChannelSelection {
    var selection = ChannelSelection(channels: [])
    for topic in sources.keys where !topic.isPresence {
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
