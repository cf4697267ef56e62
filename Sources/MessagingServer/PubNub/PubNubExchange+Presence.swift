internal import AccessControl
internal import ApplicationStore
internal import MessagingQueue
internal import Realtime
internal import StrictJSON

extension PubNubExchange {
  private var application: String { caller.application.application.name }

  /// Makes the user of a subscription or a heartbeat present.
  ///
  /// A client without a user id is present nowhere.
  func join(_ call: PresenceCall) throws(PubNubRefusal) {
    guard let userID = request.userID, !userID.isEmpty else { return }
    let channels = try presenceChannels(call)
    let states = try states(call, channels)
    try change { (presence, arrival, time) throws(PresenceRefusal) in
      try presence.join(
        UserID(userID), of: application, on: channels, state: states,
        timeout: call.timeout.map { .seconds($0) }, arrival: arrival, at: time)
    }
  }

  func heartbeat(_ call: PresenceCall) throws(PubNubRefusal) {
    guard isAllowed(.heartbeat, channels: call.channels, groups: call.groups) else { return }
    try requireUser()
    try join(call)
    answer(.presence())
  }

  func leave(_ call: PresenceCall) throws(PubNubRefusal) {
    guard isAllowed(.unsubscribe, channels: call.channels, groups: call.groups) else { return }
    let userID = UserID(try requireUser())
    let channels = try presenceChannels(call)
    try change { (presence, arrival, time) throws(PresenceRefusal) in
      presence.leave(userID, of: application, on: channels, arrival: arrival, at: time)
    }
    answer(.presence([JSONMember("action", "leave")]))
  }

  /// Who is present: one channel in a short form, several and groups in another.
  func hereNow(_ call: HereNowCall) throws(PubNubRefusal) {
    guard !call.channels.isEmpty || !call.groups.isEmpty else { return hereNowEverywhere(call) }
    guard isAllowed(.hereNow, channels: call.channels, groups: call.groups) else { return }
    if call.channels.count == 1, call.groups.isEmpty {
      return answer(.presence(try occupants(of: channel(call.channels[0]), call)))
    }
    answer(hereNow(Set(try channels(names(call.channels, call.groups))), call))
  }

  private func hereNowEverywhere(_ call: HereNowCall) {
    let now = home.now()
    let decision = home.decide(caller, .hereNowEverywhere, .application, now)
    guard decision.isAllowed else {
      return answer(caller.challenge(after: decision) ?? HTTPResponse(decision.reply()))
    }
    // Private channels need an authority of their own.
    let channels = home.presence.read { $0.occupancies(of: application).keys }.filter { channel in
      guard let name = try? ChannelName(channel.nameInApplication) else { return false }
      return home.decide(caller, .hereNow, .channel(name), now).isAllowed
    }
    answer(hereNow(Set(channels), call))
  }

  private func hereNow(_ channels: Set<Channel>, _ call: HereNowCall) -> HTTPResponse {
    var found: [JSONMember] = []
    var total = 0
    for channel in channels.sorted(by: { $0.name < $1.name }) {
      let occupancy = home.presence.read { $0.occupancy(of: channel, of: application) }
      guard occupancy > 0 else { continue }
      total += occupancy
      found.append(JSONMember(channel.nameInApplication, .object(occupants(of: channel, call))))
    }
    return .presence([
      JSONMember(
        "payload",
        [
          "channels": .object(found), "total_channels": .integer(Int64(found.count)),
          "total_occupancy": .integer(Int64(total)),
        ])
    ])
  }

  private func occupants(of channel: Channel, _ call: HereNowCall) -> [JSONMember] {
    let (occupancy, users) = home.presence.read { presence in
      (
        presence.occupancy(of: channel, of: application),
        call.hasUsers && call.limit > 0
          ? presence.users(
            of: channel, of: application, offset: call.offset, maximumCount: call.limit) : []
      )
    }
    let count = JSONMember("occupancy", .integer(Int64(occupancy)))
    guard call.hasUsers else { return [count] }
    let list = users.map { user, state -> JSONValue in
      guard call.hasState else { return .string(user.text) }
      let state = state.flatMap { try? JSONReader.value($0) }
      return .object(
        [JSONMember("uuid", .string(user.text))] + (state.map { [JSONMember("state", $0)] } ?? []))
    }
    return [JSONMember("uuids", .array(list)), count]
  }

  /// The channels of a user, as far as the caller can read them.
  func whereNow(_ userID: String) throws(PubNubRefusal) {
    let now = home.now()
    let names = home.presence.read { $0.channels(of: UserID(userID), of: application) }
      .compactMap { try? ChannelName($0.nameInApplication) }
      .filter { home.decide(caller, .whereNow, .channel($0), now).isAllowed }
    answer(
      .presence([
        JSONMember("payload", ["channels": .array(names.map { .string($0.text) })])
      ]))
  }

  /// The state of a user: of one channel in a short form, of several and groups in another.
  func getState(_ call: PresenceCall, _ userID: String) throws(PubNubRefusal) {
    guard isAllowed(.getState, channels: call.channels, groups: call.groups) else { return }
    let channels = try presenceChannels(call)
    let states = home.presence.read {
      $0.states(of: UserID(userID), of: application, on: channels)
    }
    func value(_ channel: Channel) -> JSONValue {
      states[channel].flatMap { try? JSONReader.value($0) } ?? .object([])
    }
    let user = JSONMember("uuid", .string(userID))
    if call.groups.isEmpty, call.channels.count == 1, let channel = channels.first {
      return answer(
        .presence([
          JSONMember("payload", value(channel)),
          JSONMember("channel", .string(call.channels[0].text)), user,
        ]))
    }
    let members = channels.map { JSONMember($0.nameInApplication, value($0)) }
    answer(.presence([JSONMember("payload", ["channels": .object(members)]), user]))
  }

  func setState(
    _ call: PresenceCall, _ userID: String, _ state: [UInt8]
  ) throws(PubNubRefusal) {
    guard isAllowed(.setState, channels: call.channels, groups: call.groups) else { return }
    guard let value = try? JSONReader.value(state), case .object = value else {
      throw PubNubRefusal(.presence, 400, "Invalid JSON specified.")
    }
    let channels = try presenceChannels(call)
    try change { (presence, arrival, time) throws(PresenceRefusal) in
      try presence.setState(
        state, of: UserID(userID), of: application, on: channels, arrival: arrival, at: time)
    }
    answer(.presence([JSONMember("payload", value)]))
  }

  // MARK: - Parts

  /// The channels of a call with the members of its groups, each once and without those of presence.
  private func names(
    _ channels: [ChannelName], _ groups: [GroupName]
  ) throws(PubNubRefusal) -> [ChannelName] {
    let members = try home.members(
      of: groups.filter { !$0.isPresence }, beside: channels, in: caller.application,
      request.family)
    var seen: Set<ChannelName> = []
    return (channels + members.flatMap(\.channels)).filter {
      !$0.isPresence && seen.insert($0).inserted
    }
  }

  /// The channels on which a call makes a user present: its own, and the members of its groups.
  private func presenceChannels(_ call: PresenceCall) throws(PubNubRefusal) -> [Channel] {
    try channels(names(call.channels, call.groups))
  }

  /// The states that a call has for some of its channels.
  private func states(
    _ call: PresenceCall, _ channels: [Channel]
  ) throws(PubNubRefusal) -> [Channel: [UInt8]] {
    guard let text = call.state else { return [:] }
    guard let value = try? JSONReader.value(text), let members = value.members else {
      throw PubNubRefusal(request.family, 400, "Invalid JSON specified.")
    }
    var states: [Channel: [UInt8]] = [:]
    for channel in channels {
      guard let state = members[channel.nameInApplication] else { continue }
      var json: [UInt8] = []
      state.append(to: &json)
      states[channel] = json
    }
    return states
  }

  @discardableResult
  private func requireUser() throws(PubNubRefusal) -> String {
    guard let userID = request.userID, !userID.isEmpty else {
      throw PubNubRefusal(.presence, 400, "Missing uuid")
    }
    return userID
  }

  private func change(
    _ body: (inout Presence, UInt64, PresenceTime) throws(PresenceRefusal) -> [PresenceEvent]
  ) throws(PubNubRefusal) {
    do {
      try home.presence.change(body)
    } catch {
      switch error {
      case .stateTooLarge: throw PubNubRefusal(request.family, 413, "Request Entity Too Large")
      case .tooManyChannels: throw .tooManyChannels(request.family)
      case .tooManyUsers, .tooManyPresences, .tooMuchState:
        throw PubNubRefusal(request.family, 429, "Too many users are present")
      }
    }
  }
}
