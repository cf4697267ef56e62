/// What a caller asks for: PubNub's operations, and those of the queue.
///
/// [The table](docs/reference/access.md) has a row for each.
public enum AccessOperation: String, Sendable, Hashable, CaseIterable {
  /// Subscribe to a channel, a pattern, a group, or the presence channel of one of them.
  case subscribe
  /// Leave a channel, a pattern, a group, or the presence channel of one of them.
  case unsubscribe
  /// Stay present on a channel or through a group.
  case heartbeat
  /// Publish a message.
  case publish
  /// Publish a signal, which is not stored.
  case signal
  /// Publish to server functions alone.
  case fire
  /// Send an event from one Pusher client to the others of a channel.
  case clientEvent = "client event"
  /// Who is present on a channel, or on the channels of a group.
  case hereNow = "here-now"
  /// Who is present on any channel of the application.
  case hereNowEverywhere = "here-now for all channels"
  /// On which channels a user is: checked for each channel of the answer.
  case whereNow = "where-now"
  /// Read a user's state.
  case getState = "get state"
  /// Change a user's state.
  case setState = "set state"
  /// Read the history of a channel, version 2.
  case history
  /// Read the history of channels, version 3.
  case fetch
  /// Count the messages of channels.
  case messageCounts = "message counts"
  /// Delete messages from history.
  case deleteMessages = "delete messages"
  /// List the channels of a group.
  case listGroupChannels = "list channels of group"
  /// Add channels to a group.
  case addToGroup = "add to group"
  /// Remove channels from a group.
  case removeFromGroup = "remove from group"
  /// Remove a group.
  case removeGroup = "remove group"
  /// List the groups of the application; the resource is ``GroupName/all``.
  case listGroups = "list groups"
  /// Take messages of a consumer, and settle, extend or release their leases.
  case lease
  /// Make or change a consumer.
  case addConsumer = "add consumer"
  /// Read, redrive or remove dead letters.
  case deadLetters = "dead letters"
  /// Remove all messages of a channel.
  case purge
  /// Grant, audit and revoke, for auth keys and tokens.
  case manageAccess = "manage access"

  /// The right that the operation needs; nil if only the secret key gives it.
  public var right: Rights? {
    switch self {
    case .subscribe, .unsubscribe, .heartbeat, .hereNow, .hereNowEverywhere, .whereNow, .getState,
      .setState, .history, .fetch, .messageCounts, .listGroupChannels, .listGroups:
      .read
    case .publish, .signal, .fire, .clientEvent: .write
    case .addToGroup, .removeFromGroup, .removeGroup, .addConsumer, .deadLetters, .purge: .manage
    case .deleteMessages: .delete
    case .lease: .lease
    case .manageAccess: nil
    }
  }

  /// Whether the operation sends a message that subscribers see.
  var sends: Bool { right == .write }

  /// Whether the operation works on a scope of this kind.
  package func applies(to scope: Scope) -> Bool {
    switch (self, scope) {
    case (.subscribe, .channel), (.subscribe, .group), (.unsubscribe, .channel),
      (.unsubscribe, .group), (.heartbeat, .channel), (.heartbeat, .group), (.hereNow, .channel),
      (.hereNow, .group), (.getState, .channel), (.getState, .group), (.setState, .channel),
      (.setState, .group):
      true
    case (.publish, .channel), (.signal, .channel), (.fire, .channel), (.clientEvent, .channel),
      (.whereNow, .channel), (.history, .channel), (.fetch, .channel), (.messageCounts, .channel),
      (.deleteMessages, .channel), (.purge, .channel):
      true
    case (.listGroupChannels, .group), (.addToGroup, .group), (.removeFromGroup, .group),
      (.removeGroup, .group), (.listGroups, .group):
      true
    case (.lease, .channel), (.lease, .consumer), (.addConsumer, .channel),
      (.addConsumer, .consumer), (.deadLetters, .channel), (.deadLetters, .consumer):
      true
    case (.hereNowEverywhere, .application), (.manageAccess, .application): true
    default: false
    }
  }

  /// What everyone can do in an open application: what PubNub allows without the access manager.
  ///
  /// Deleting, leases and the administration of the queue need a grant there too.
  var isOpen: Bool {
    switch self {
    case .subscribe, .unsubscribe, .heartbeat, .publish, .signal, .fire, .hereNow,
      .hereNowEverywhere, .whereNow, .getState, .setState, .history, .fetch, .messageCounts,
      .listGroupChannels, .addToGroup, .removeFromGroup, .removeGroup, .listGroups, .clientEvent:
      true
    case .deleteMessages, .lease, .addConsumer, .deadLetters, .purge, .manageAccess: false
    }
  }
}
