internal import AccessControl
internal import Foundation
internal import MessagingQueue
internal import StrictJSON

/// Reads the path and the query of a request.
///
/// A path is split at `/`, then at `,`, and decoded then, because SDKs encode a comma inside a name. A list in the query
/// is decoded first and split then, because JavaScript encodes its separators.
struct PubNubPathParser {
  let raw: RawRequest
  /// The parts of the path, still encoded.
  let parts: [ArraySlice<UInt8>]
  var subscribeKey = ""

  init(_ raw: RawRequest) {
    self.raw = raw
    // Not with `split`, which calls a closure for each byte: one of the parts can be a message.
    var parts: [ArraySlice<UInt8>] = []
    var rest = raw.path.dropFirst()
    while let slash = rest.firstIndex(of: UInt8(ascii: "/")) {
      parts.append(rest[..<slash])
      rest = rest[(slash + 1)...]
    }
    self.parts = parts + [rest]
  }

  mutating func call() throws(PubNubRefusal) -> (PubNubFamily, PubNubCall)? {
    guard raw.path.first == UInt8(ascii: "/") else { return nil }
    switch (word(0), word(1)) {
    case ("time", _): return raw.method == "GET" ? (.publish, .time) : nil
    case ("publish", _): return try publish(.message).map { (.publish, $0) }
    case ("signal", _): return try publish(.signal).map { (.publish, $0) }
    case ("v2", "subscribe"):
      guard raw.method == "GET", parts.count >= 4 else { return nil }
      subscribeKey = try text(parts[2], .subscribe)
      return (.subscribe, try subscribe())
    case ("v2", "presence"): return try presence().map { (.presence, $0) }
    case ("v2", "history"), ("v3", "history"), ("v3", "history-with-actions"):
      return try history().map { (.history, $0) }
    case ("v1", "channel-registration"): return try groups().map { (.groups, .groups($0)) }
    case ("v1", "objects"), ("v2", "objects"): return (.access, .unavailable(.objects))
    case ("v1", "files"): return (.access, .unavailable(.files))
    case ("v1", "push"), ("v2", "push"): return (.access, .unavailable(.push))
    case ("v1", "message-actions"): return (.access, .unavailable(.actions))
    default:
      guard let (call, key) = AccessManagerCall.of(raw) else { return nil }
      subscribeKey = key
      return (.access, .access(call))
    }
  }

  // MARK: - Calls

  private mutating func publish(
    _ kind: PublishCall.Kind
  ) throws(PubNubRefusal) -> PubNubCall? {
    guard parts.count >= 5 else { return nil }
    let hasBody = raw.method == "POST"
    guard hasBody || raw.method == "GET" else { return nil }
    subscribeKey = try text(parts[2], .publish)
    let channel = try channel(parts[4], .publish)
    // A message can have a '/' that its client did not encode.
    let message = parts.count > 6 ? raw.path[parts[6].startIndex...] : []
    var call = PublishCall(
      kind: kind, publishKey: try text(parts[1], .publish), channel: channel,
      payload: hasBody ? raw.body : PercentEncoding.decode(message))
    call.isStored = try flag("store", .publish)
    if kind == .message, call.isStored == false, try flag("norep", .publish) == true {
      call.kind = .fire
    }
    if let ttl = try text("ttl", .publish), !ttl.isEmpty {
      guard let hours = Double(ttl), hours >= 0, hours.isFinite else {
        throw .invalidArguments(.publish)
      }
      call.hours = hours
    }
    if let meta = raw.value("meta"), !meta.isEmpty {
      guard JSONText.isValid(meta) else { throw PubNubRefusal(.publish, 400, "Invalid JSON") }
      call.meta = meta
    }
    call.customType = try customType()
    return .publish(call)
  }

  private func customType() throws(PubNubRefusal) -> String? {
    guard let type = try text("custom_message_type", .publish) else { return nil }
    let isValid =
      (3...50).contains(type.utf8.count)
      && type.utf8.allSatisfy {
        $0.isLetterOrDigit || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_")
      }
      && type.utf8.first?.isLetterOrDigit == true && !type.hasPrefix("pn_")
      && !type.hasPrefix("pn-")
    guard isValid else { throw .invalidArguments(.publish) }
    return type
  }

  private func subscribe() throws(PubNubRefusal) -> PubNubCall {
    let listener = try presenceCall(channels: parts[3], .subscribe)
    guard !listener.channels.isEmpty || !listener.groups.isEmpty else {
      throw PubNubRefusal(.subscribe, 400, "Channel or channel group is missing")
    }
    return .subscribe(
      SubscribeCall(
        listener: listener, place: try timetoken("tt", .subscribe),
        filter: try text("filter-expr", .subscribe)))
  }

  private mutating func presence() throws(PubNubRefusal) -> PubNubCall? {
    guard ["sub-key", "sub_key"].contains(word(2)), parts.count >= 4, raw.method == "GET" else {
      return nil
    }
    subscribeKey = try text(parts[3], .presence)
    switch (word(4), parts.count) {
    case ("", 4), ("", 5): return .hereNow(try hereNow(channels: nil))
    case ("uuid", 6): return .whereNow(userID: try text(parts[5], .presence))
    case ("channel", 6): return .hereNow(try hereNow(channels: parts[5]))
    case ("channel", 7...):
      switch (word(6), parts.count) {
      case ("heartbeat", 7): return .heartbeat(try presenceCall(channels: parts[5], .presence))
      case ("leave", 7): return .leave(try presenceCall(channels: parts[5], .presence))
      case ("uuid", 8):
        return .getState(
          try presenceCall(channels: parts[5], .presence), userID: try text(parts[7], .presence))
      case ("uuid", 9) where word(8) == "data":
        return try setState()
      default: return nil
      }
    default: return nil
    }
  }

  private func setState() throws(PubNubRefusal) -> PubNubCall {
    guard let state = raw.value("state") else {
      throw PubNubRefusal(.presence, 400, "No state specified.")
    }
    return .setState(
      try presenceCall(channels: parts[5], .presence, readsState: false),
      userID: try text(parts[7], .presence), state: state)
  }

  private func hereNow(channels: ArraySlice<UInt8>?) throws(PubNubRefusal) -> HereNowCall {
    // Go writes a hyphen.
    let isWithoutUsers =
      [try flag("disable_uuids", .presence), try flag("disable-uuids", .presence)].contains(true)
    var names: [ChannelName] = []
    if let channels { names = try self.channels(channels, .presence) }
    return HereNowCall(
      channels: names, groups: try groupNames(.presence),
      limit: try number("limit", in: 0...1000, .presence) ?? 1000,
      offset: try number("offset", in: 0...Int(Int32.max), .presence) ?? 0,
      hasState: try flag("state", .presence) ?? false, hasUsers: !isWithoutUsers)
  }

  private mutating func history() throws(PubNubRefusal) -> PubNubCall? {
    guard word(2) == "sub-key", parts.count == 6 else { return nil }
    subscribeKey = try text(parts[3], .history)
    let isVersion2 = word(0) == "v2"
    if word(4) == "message-counts" {
      return raw.method == "GET" && !isVersion2 ? .messageCounts(try counts(parts[5])) : nil
    }
    guard word(4) == "channel" else { return nil }
    var call = HistoryCall(channels: try channels(parts[5], .history))
    guard !call.channels.isEmpty, !isVersion2 || call.channels.count == 1 else {
      throw .invalidArguments(.history)
    }
    if raw.method == "DELETE", !isVersion2 {
      guard call.channels.count == 1 else { throw .invalidArguments(.history) }
      call.start = try bound("start", .history)
      call.end = try bound("end", .history)
      return .deleteMessages(call)
    }
    guard raw.method == "GET" else { return nil }
    call.start = try timetoken("start", .history)
    call.end = try timetoken("end", .history)
    call.count = try number(isVersion2 ? "count" : "max", in: 1...Int(Int32.max), .history)
    call.isReversed = try flag("reverse", .history) ?? false
    let names: [(StaticString, HistoryCall.Part)] = [
      ("include_token", .timetoken), ("include_meta", .meta), ("include_uuid", .userID),
      ("include_message_type", .messageType), ("include_custom_message_type", .customType),
      ("string_message_token", .textTimetokens),
    ]
    for (name, part) in names where try flag(name, .history) == true { call.includes.insert(part) }
    return isVersion2 ? .history(call) : .fetch(call)
  }

  private func counts(
    _ part: ArraySlice<UInt8>
  ) throws(PubNubRefusal) -> [(channel: ChannelName, after: Timetoken)] {
    let channels = try channels(part, .history)
    var places: [Timetoken] = []
    if let one = try timetoken("timetoken", .history) { places = [one] }
    if let list = raw.value("channelsTimetoken") {
      places = []
      for piece in list.split(separator: UInt8(ascii: ",")) {
        guard let place = try Self.timetoken(piece, .history) else {
          throw .invalidArguments(.history)
        }
        places.append(place)
      }
    }
    guard !channels.isEmpty, places.count == 1 || places.count == channels.count else {
      throw .invalidArguments(.history)
    }
    return channels.enumerated().map { ($1, places.count == 1 ? places[0] : places[$0]) }
  }

  private mutating func groups() throws(PubNubRefusal) -> GroupCall? {
    guard word(2) == "sub-key", word(4) == "channel-group", raw.method == "GET" else { return nil }
    subscribeKey = try text(parts[3], .groups)
    guard parts.count > 5, !word(5).isEmpty else { return .list }
    let name = try text(parts[5], .groups)
    guard let group = try? GroupName(name), group != .all, !group.isPresence else {
      throw PubNubRefusal(.groups, 400, "Reserved character in input parameters.")
    }
    if word(6) == "remove" { return .removeGroup(group) }
    if raw.value("add") != nil { return .add(try members("add"), to: group) }
    if raw.value("remove") != nil { return .remove(try members("remove"), from: group) }
    return .channels(group)
  }

  private func members(_ parameter: StaticString) throws(PubNubRefusal) -> [ChannelName] {
    let names = try list(parameter, .groups)
    var channels: [ChannelName] = []
    for name in names {
      guard let channel = try? ChannelName(name), !channel.isPattern, !channel.isReserved else {
        throw PubNubRefusal(.groups, 400, "Reserved character in input parameters.")
      }
      channels.append(channel)
    }
    return channels
  }

  private func presenceCall(
    channels part: ArraySlice<UInt8>, _ family: PubNubFamily, readsState: Bool = true
  ) throws(PubNubRefusal) -> PresenceCall {
    var call = PresenceCall(
      channels: try channels(part, family), groups: try groupNames(family),
      timeout: try number("heartbeat", in: 0...Int(Int32.max), family))
    if readsState, let state = raw.value("state"), !state.isEmpty { call.state = state }
    return call
  }

  // MARK: - Values

  /// A part of the path that is a word of the API; empty if there is no such part.
  private func word(_ index: Int) -> String {
    index < parts.count ? String(decoding: parts[index], as: UTF8.self) : ""
  }

  private func text(
    _ part: ArraySlice<UInt8>, _ family: PubNubFamily
  ) throws(PubNubRefusal) -> String {
    guard let text = String(validating: PercentEncoding.decode(part), as: UTF8.self) else {
      throw .invalidArguments(family)
    }
    return text
  }

  func text(
    _ parameter: StaticString, _ family: PubNubFamily, maximumByteCount: Int = 8192
  ) throws(PubNubRefusal) -> String? {
    guard let bytes = raw.value(parameter) else { return nil }
    guard bytes.count <= maximumByteCount, let text = String(validating: bytes, as: UTF8.self)
    else { throw .invalidArguments(family) }
    return text
  }

  private func channel(
    _ part: ArraySlice<UInt8>, _ family: PubNubFamily
  ) throws(PubNubRefusal) -> ChannelName {
    guard let channel = try? ChannelName(try text(part, family)) else {
      throw PubNubRefusal(family, 400, "Invalid Channel")
    }
    return channel
  }

  private func channels(
    _ part: ArraySlice<UInt8>, _ family: PubNubFamily
  ) throws(PubNubRefusal) -> [ChannelName] {
    // An empty list is a comma, encoded or not.
    if PercentEncoding.decode(part) == [UInt8(ascii: ",")] { return [] }
    var channels: [ChannelName] = []
    var seen: Set<ChannelName> = []
    for piece in part.split(separator: UInt8(ascii: ",")) {
      let channel = try channel(piece, family)
      guard seen.insert(channel).inserted else { continue }
      guard seen.count <= PubNubRequest.maximumNameCount else {
        throw .tooManyChannels(family)
      }
      channels.append(channel)
    }
    return channels
  }

  private func list(
    _ parameter: StaticString, _ family: PubNubFamily
  ) throws(PubNubRefusal) -> [String] {
    guard let bytes = raw.value(parameter) else { return [] }
    var names: [String] = []
    for piece in bytes.split(separator: UInt8(ascii: ",")) {
      guard names.count < PubNubRequest.maximumNameCount,
        let name = String(validating: piece, as: UTF8.self)
      else { throw .invalidArguments(family) }
      names.append(name)
    }
    return names
  }

  private func groupNames(_ family: PubNubFamily) throws(PubNubRefusal) -> [GroupName] {
    var groups: [GroupName] = []
    for name in try list("channel-group", family) {
      guard let group = try? GroupName(name), group != .all, group != .allPresence else {
        throw PubNubRefusal(family, 400, "Invalid Channel Group")
      }
      if !groups.contains(group) { groups.append(group) }
    }
    return groups
  }

  /// `1` and `true`, and a parameter without a value, are set; `0` and `false` are not.
  private func flag(
    _ parameter: StaticString, _ family: PubNubFamily
  ) throws(PubNubRefusal) -> Bool? {
    switch try text(parameter, family) {
    case nil: nil
    case "1", "true", "": true
    case "0", "false": false
    default: throw .invalidArguments(family)
    }
  }

  private func number(
    _ parameter: StaticString, in range: ClosedRange<Int>, _ family: PubNubFamily
  ) throws(PubNubRefusal) -> Int? {
    guard let text = try text(parameter, family), !text.isEmpty else { return nil }
    guard text.utf8.allSatisfy(\.isDigit), let number = Int(text),
      range.contains(number)
    else { throw .invalidArguments(family) }
    return number
  }

  /// The place that a client continues from; nil without one, which clients write as 0 too.
  private func timetoken(
    _ parameter: StaticString, _ family: PubNubFamily
  ) throws(PubNubRefusal) -> Timetoken? {
    guard let bytes = raw.value(parameter), !bytes.isEmpty else { return nil }
    return try Self.timetoken(bytes[...], family)
  }

  /// The bound of a deletion; nil without one.
  ///
  /// 0 is the beginning of the log, not a missing bound.
  private func bound(
    _ parameter: StaticString, _ family: PubNubFamily
  ) throws(PubNubRefusal) -> Timetoken? {
    guard let bytes = raw.value(parameter) else { return nil }
    return try Self.timetoken(bytes[...], family) ?? Timetoken(.distantPast)
  }

  /// The place of a number; nil for 0.
  ///
  /// A number below all timetokens is the beginning of the log.
  private static func timetoken(
    _ bytes: ArraySlice<UInt8>, _ family: PubNubFamily
  ) throws(PubNubRefusal) -> Timetoken? {
    guard (1...17).contains(bytes.count), bytes.allSatisfy(\.isDigit),
      let number = Int64(String(decoding: bytes, as: UTF8.self))
    else { throw .invalidArguments(family) }
    return number == 0 ? nil : Timetoken(rawValue: number) ?? Timetoken(.distantPast)
  }
}

extension UInt8 {
  fileprivate var isDigit: Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= self }

  fileprivate var isLetterOrDigit: Bool {
    isDigit || UInt8(ascii: "a")...UInt8(ascii: "z") ~= self
      || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= self
  }
}
