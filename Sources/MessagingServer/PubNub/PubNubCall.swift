internal import AccessControl
internal import MessagingQueue

/// A call of PubNub's API with its names decoded: `docs/reference/pubnub-api.md` has every endpoint.
enum PubNubCall: Sendable {
  /// `/time/0`
  case time
  /// `/publish/{pub}/{sub}/0/{channel}/0/{json}`, or the message in the body.
  case publish(PublishCall)
  /// `/v2/subscribe/{sub}/{channels}/0`
  case subscribe(SubscribeCall)
  /// `/v2/presence/sub-key/{sub}/channel/{channels}/heartbeat`
  case heartbeat(PresenceCall)
  /// `/v2/presence/sub-key/{sub}/channel/{channels}/leave`
  case leave(PresenceCall)
  /// `/v2/presence/sub-key/{sub}/channel/{channels}`; without channels and groups, all of the application.
  case hereNow(HereNowCall)
  /// `/v2/presence/sub-key/{sub}/uuid/{uuid}`
  case whereNow(userID: String)
  /// `/v2/presence/sub-key/{sub}/channel/{channels}/uuid/{uuid}`
  case getState(PresenceCall, userID: String)
  /// `/v2/presence/sub-key/{sub}/channel/{channels}/uuid/{uuid}/data`
  case setState(PresenceCall, userID: String, state: [UInt8])
  /// `/v2/history/sub-key/{sub}/channel/{channel}`
  case history(HistoryCall)
  /// `/v3/history/sub-key/{sub}/channel/{channels}`
  case fetch(HistoryCall)
  /// `/v3/history/sub-key/{sub}/message-counts/{channels}`
  case messageCounts([(channel: ChannelName, after: Timetoken)])
  /// `DELETE /v3/history/sub-key/{sub}/channel/{channel}`
  case deleteMessages(HistoryCall)
  /// `/v1/channel-registration/sub-key/{sub}/channel-group`
  case groups(GroupCall)
  /// `/v2/auth/...` and `/v3/pam/...`
  case access(AccessManagerCall)
  /// A part of PubNub that this server does not have.
  case unavailable(PubNubFeature)
}

/// A publication: of a message, of a signal, or for server functions alone.
struct PublishCall: Sendable {
  enum Kind: Sendable { case message, signal, fire }

  var kind: Kind
  let publishKey: String
  let channel: ChannelName
  /// The JSON text, not checked yet.
  var payload: [UInt8]
  /// Whether history shows the message; nil for the default of the application, which is true.
  var isStored: Bool?
  /// How long history shows the message, in hours; nil or 0 for as long as it is kept.
  var hours: Double?
  /// JSON text for filters and subscribers.
  var meta: [UInt8]?
  var customType: String?
}

/// What a subscriber listens to, from where on.
struct SubscribeCall: Sendable {
  var listener: PresenceCall
  /// The place to continue from; nil for the first call of a client.
  let place: Timetoken?
  let filter: String?
}

/// Channels and groups on which a user is, or no longer is.
struct PresenceCall: Sendable {
  var channels: [ChannelName]
  var groups: [GroupName]
  /// How long the user stays present without another call, in seconds; nil for the default.
  var timeout: Int?
  /// JSON text: an object with a state for each channel.
  var state: [UInt8]?
}

/// Who is present.
struct HereNowCall: Sendable {
  var channels: [ChannelName]
  var groups: [GroupName]
  var limit: Int
  var offset: Int
  var hasState: Bool
  var hasUsers: Bool
}

/// A part of the history of channels.
struct HistoryCall: Sendable {
  var channels: [ChannelName]
  /// The newer bound, exclusive.
  var start: Timetoken?
  /// The older bound, inclusive.
  var end: Timetoken?
  /// The most messages of a channel; nil for the default.
  var count: Int?
  /// Version 2: from the oldest message on.
  var isReversed = false
  var includes: Set<Part> = []

  /// What each message of an answer has beside its payload.
  enum Part: Sendable { case timetoken, meta, userID, messageType, customType, textTimetokens }
}

/// A change or a reading of channel groups.
enum GroupCall: Sendable {
  case list
  case channels(GroupName)
  case add([ChannelName], to: GroupName)
  case remove([ChannelName], from: GroupName)
  case removeGroup(GroupName)
}

/// The parts of PubNub that this server does not have.
enum PubNubFeature: String, Sendable {
  case objects, files, push
  case actions = "message actions"

  /// The word in PubNub's errors.
  var source: String { self == .actions ? "actions" : rawValue }
}

/// The groups of calls whose errors have the same shape.
enum PubNubFamily: Sendable {
  case publish, subscribe, presence, history, groups, access
}
