internal import AccessControl

/// What a request asks for, as metrics and logs name it: the template of its path, never the path.
enum Route: String, Sendable, CaseIterable {
  case time = "/time/0"
  case publish = "/publish/{pub}/{sub}/0/{channel}/0"
  case signal = "/signal/{pub}/{sub}/0/{channel}/0"
  case subscribe = "/v2/subscribe/{sub}/{channels}/0"
  case heartbeat = "/v2/presence/sub-key/{sub}/channel/{channels}/heartbeat"
  case leave = "/v2/presence/sub-key/{sub}/channel/{channels}/leave"
  case hereNow = "/v2/presence/sub-key/{sub}/channel/{channels}"
  case whereNow = "/v2/presence/sub-key/{sub}/uuid/{uuid}"
  case getState = "/v2/presence/sub-key/{sub}/channel/{channels}/uuid/{uuid}"
  case setState = "/v2/presence/sub-key/{sub}/channel/{channels}/uuid/{uuid}/data"
  case history = "/v2/history/sub-key/{sub}/channel/{channel}"
  case fetch = "/v3/history/sub-key/{sub}/channel/{channels}"
  case messageCounts = "/v3/history/sub-key/{sub}/message-counts/{channels}"
  case deleteMessages = "DELETE /v3/history/sub-key/{sub}/channel/{channel}"
  case groups = "/v1/channel-registration/sub-key/{sub}/channel-group/{group}"
  case changeGroup = "/v1/channel-registration/sub-key/{sub}/channel-group/{group}?add&remove"
  case removeGroup = "/v1/channel-registration/sub-key/{sub}/channel-group/{group}/remove"
  case grant = "/v2/auth/grant/sub-key/{sub}"
  case auditGrants = "/v2/auth/audit/sub-key/{sub}"
  case grantToken = "/v3/pam/{sub}/grant"
  case revokeToken = "/v3/pam/{sub}/grant/{token}"
  case pusherConnection = "/app/{key}"
  case pusherEvents = "/apps/{id}/events"
  case pusherBatch = "/apps/{id}/batch_events"
  case pusherChannels = "/apps/{id}/channels"
  case pusherChannel = "/apps/{id}/channels/{channel}"
  case pusherUsers = "/apps/{id}/channels/{channel}/users"
  case pusherAuthorization = "/pusher/auth/{key}"
  case pusherTermination = "/apps/{id}/users/{user}/terminate_connections"
  /// A connection of STOMP, over a stream or a WebSocket.
  case stompConnection = "/stomp"
  /// A part of PubNub that this server does not have.
  case unavailable
  case live = "/health/live"
  case ready = "/health/ready"
  case metrics = "/metrics"
  /// OPTIONS, which web pages send before other requests.
  case preflight = "OPTIONS"
  /// Anything else, broken requests included.
  case other
}

extension PubNubCall {
  var route: Route {
    switch self {
    case .time: .time
    case .publish(let call): call.kind == .signal ? .signal : .publish
    case .subscribe: .subscribe
    case .heartbeat: .heartbeat
    case .leave: .leave
    case .hereNow: .hereNow
    case .whereNow: .whereNow
    case .getState: .getState
    case .setState: .setState
    case .history: .history
    case .fetch: .fetch
    case .messageCounts: .messageCounts
    case .deleteMessages: .deleteMessages
    case .groups(.list), .groups(.channels): .groups
    case .groups(.add), .groups(.remove): .changeGroup
    case .groups(.removeGroup): .removeGroup
    case .access(.grant): .grant
    case .access(.audit): .auditGrants
    case .access(.grantToken): .grantToken
    case .access(.revokeToken): .revokeToken
    case .unavailable: .unavailable
    }
  }
}
