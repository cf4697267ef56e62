package import MessagingQueue

/// The channels, patterns and groups that one subscriber listens to.
package struct Subscription: Sendable {
  /// Why an event reaches the subscriber.
  ///
  /// A direct subscription comes before a pattern, a pattern before a group.
  package enum Source: Sendable, Hashable {
    case channel
    /// The pattern, such as `application/a.*`.
    case pattern(Channel)
    /// The name of the group.
    case group(String)
  }

  /// A topic is the name of a channel, or a pattern in the place of a name.
  private(set) var sources: [Channel: Source] = [:]

  /// - Parameters:
  ///   - channels: names of channels, and patterns: a name that ends with `.*` stands for all names that begin with the
  ///     part before the star.
  ///   - groups: the members of each group.
  package init(channels: some Sequence<Channel>, groups: [String: Set<Channel>] = [:]) {
    for (name, members) in groups {
      for member in members { sources[member] = .group(name) }
    }
    for channel in channels {
      sources[channel] = channel.isPattern ? .pattern(channel) : .channel
    }
  }

  /// Why an event of these topics reaches the subscriber; nil if it does not.
  ///
  /// - Parameter topics: the event's own channel first.
  func source(of topics: [Channel]) -> Source? {
    var group: Source?
    for topic in topics {
      guard let source = sources[topic] else { continue }
      if case .group = source { group = source } else { return source }
    }
    return group
  }

  /// The channels and prefixes to read from the log.
  var selection: ChannelSelection {
    var selection = ChannelSelection(channels: [])
    for topic in sources.keys {
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
  /// Whether the name stands for all names that begin with the part before its star.
  var isPattern: Bool { name.hasSuffix(".*") }

  /// The topics under which subscribers find an event of this channel: the channel first, then the patterns that it
  /// matches.
  ///
  /// Two dots are the most that a name with patterns has.
  var topics: [Channel] {
    var topics = [self]
    for (index, byte) in zip(name.utf8.indices, name.utf8) where byte == UInt8(ascii: ".") {
      // Only a name of almost the greatest length has no pattern.
      if let pattern = try? Channel(name[...index] + "*") { topics.append(pattern) }
      if topics.count == 3 { break }
    }
    return topics
  }
}
