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
      let channel = try channel(call.channels[0])
      var budget = AnswerBudget()
      return answer(.presence(json: occupants(of: channel, call, &budget)))
    }
    let channels = try channels(names(call.channels, call.groups))
    run { try await hereNow(channels, call) }
  }

  private func hereNowEverywhere(_ call: HereNowCall) {
    let now = home.now()
    let decision = home.decide(caller, .hereNowEverywhere, .application, now)
    guard decision.isAllowed else {
      return answer(caller.challenge(after: decision) ?? HTTPResponse(decision.reply()))
    }
    run {
      let channels = home.presence.read {
        $0.channels(of: application, maximumCount: AnswerBudget.maximumChannelCount)
      }
      // Private channels need an authority of their own.
      return try await hereNow(channels, call) { channel in
        guard let name = try? ChannelName(channel.nameInApplication) else { return false }
        return home.decide(caller, .hereNow, .channel(name), now).isAllowed
      }
    }
  }

  private func hereNow(
    _ channels: [Channel], _ call: HereNowCall,
    isReadable: @Sendable (Channel) -> Bool = { _ in true }
  ) async throws -> HTTPResponse {
    var json = JSONListBuilder(#""payload":{"channels":{"#)
    var budget = AnswerBudget()
    var (count, total) = (0, 0)
    for channel in channels.sorted(by: { $0.name < $1.name }) {
      try await endSlice()
      let occupancy = home.presence.read { $0.occupancy(of: channel, of: application) }
      guard occupancy > 0, isReadable(channel) else { continue }
      count += 1
      total += occupancy
      // A name takes twice its bytes at most, as it has no control characters.
      guard budget.take(byteCount: 2 * channel.name.utf8.count + 64) else { continue }
      json.beginMember(channel.nameInApplication)
      json.bytes += "{".utf8 + occupants(of: channel, call, &budget) + "}".utf8
    }
    json.bytes += #"},"total_channels":\#(count),"total_occupancy":\#(total)}"#.utf8
    return .presence(json: json.bytes)
  }

  /// The members of a channel's object: users as far as there is room, and how many there are.
  private func occupants(
    of channel: Channel, _ call: HereNowCall, _ budget: inout AnswerBudget
  ) -> [UInt8] {
    let (occupancy, users) = home.presence.read { presence in
      (
        presence.occupancy(of: channel, of: application),
        call.hasUsers
          ? presence.users(
            of: channel, of: application, offset: call.offset,
            maximumCount: min(call.limit, budget.userCount)) : []
      )
    }
    let count = Array(#""occupancy":\#(occupancy)"#.utf8)
    guard call.hasUsers else { return count }
    var json = JSONListBuilder(#""uuids":["#)
    for (user, state) in users {
      var entry: [UInt8] = []
      if call.hasState { entry += #"{"uuid":"#.utf8 }
      JSONText.append(quoting: user.text, to: &entry)
      if call.hasState {
        if let state { entry += Array(#","state":"#.utf8) + state }
        entry.append(UInt8(ascii: "}"))
      }
      guard budget.takeUser(byteCount: entry.count + 1) else { break }
      json.beginElement()
      json.bytes += entry
    }
    return json.bytes + "],".utf8 + count
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
    func state(_ channel: Channel) -> [UInt8] { states[channel] ?? Array("{}".utf8) }
    if call.groups.isEmpty, call.channels.count == 1, let channel = channels.first {
      var json = JSONListBuilder("")
      json.beginMember("payload")
      json.bytes += state(channel)
      json.beginMember("channel")
      JSONText.append(quoting: call.channels[0].text, to: &json.bytes)
      json.beginMember("uuid")
      JSONText.append(quoting: userID, to: &json.bytes)
      return answer(.presence(json: json.bytes))
    }
    var json = JSONListBuilder(#""payload":{"channels":{"#)
    var budget = AnswerBudget()
    for channel in channels {
      let state = state(channel)
      guard budget.take(byteCount: 2 * channel.name.utf8.count + state.count + 8) else { continue }
      json.beginMember(channel.nameInApplication)
      json.bytes += state
    }
    json.bytes += #"}},"uuid":"#.utf8
    JSONText.append(quoting: userID, to: &json.bytes)
    answer(.presence(json: json.bytes))
  }

  func setState(
    _ call: PresenceCall, _ userID: String, _ state: [UInt8]
  ) throws(PubNubRefusal) {
    guard isAllowed(.setState, channels: call.channels, groups: call.groups) else { return }
    guard let value = try? JSONReader.value(state), case .object = value else {
      throw PubNubRefusal(.presence, 400, "Invalid JSON specified.")
    }
    let channels = try presenceChannels(call)
    let state = Array(value.text.utf8)
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
    let listed = Set(channels)
    var states: [Channel: [UInt8]] = [:]
    for member in members {
      guard let channel = try? caller.application.channel(ChannelName(member.name)),
        listed.contains(channel)
      else { continue }
      states[channel] = Array(member.value.text.utf8)
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
