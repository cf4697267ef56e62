internal import MessagingQueue

/// The subscribers that wait, by what they wait for.
///
/// Those of a group wait under the group, so that its channels are listed once, however many they are.
struct WaitingList {
  private struct Group {
    let group: ChannelGroup
    var ids: Set<SubscriberID> = []
  }

  private var topics: [Channel: Set<SubscriberID>] = [:]
  private var groups: [ObjectIdentifier: Group] = [:]
  /// The groups with a channel.
  private var groupsOfChannel: [Channel: Set<ObjectIdentifier>] = [:]

  /// How much is kept: pairs of a topic or a group and a subscriber, and of a channel and a group.
  var entryCount: Int {
    topics.values.reduce(0) { $0 + $1.count } + groups.values.reduce(0) { $0 + $1.ids.count }
      + groupsOfChannel.values.reduce(0) { $0 + $1.count }
  }

  mutating func insert(_ id: SubscriberID, _ subscription: Subscription) {
    for topic in subscription.topics { topics[topic, default: []].insert(id) }
    for group in subscription.groups {
      let key = ObjectIdentifier(group)
      if groups[key] == nil {
        for channel in group.channels { groupsOfChannel[channel, default: []].insert(key) }
      }
      groups[key, default: Group(group: group)].ids.insert(id)
    }
  }

  mutating func remove(_ id: SubscriberID, _ subscription: Subscription) {
    for topic in subscription.topics {
      topics[topic]?.remove(id)
      if topics[topic]?.isEmpty == true { topics[topic] = nil }
    }
    for group in subscription.groups {
      let key = ObjectIdentifier(group)
      groups[key]?.ids.remove(id)
      guard groups[key]?.ids.isEmpty == true else { continue }
      groups[key] = nil
      for channel in group.channels {
        groupsOfChannel[channel]?.remove(key)
        if groupsOfChannel[channel]?.isEmpty == true { groupsOfChannel[channel] = nil }
      }
    }
  }

  /// Calls `body` with the subscribers of an event, the first source of each before its others.
  ///
  /// - Parameter eventTopics: the event's own channel first.
  func forEach(
    _ eventTopics: [Channel], _ body: (SubscriberID, Subscription.Source) -> Void
  ) {
    for topic in eventTopics {
      for id in topics[topic] ?? [] { body(id, topic.isPattern ? .pattern(topic) : .channel) }
    }
    let groups = Set(eventTopics.flatMap { groupsOfChannel[$0] ?? [] })
      .compactMap { self.groups[$0] }.sorted { $0.group.name < $1.group.name }
    for group in groups {
      for id in group.ids { body(id, .group(group.group.name)) }
    }
  }
}
