import Foundation
@_spi(Testing) import MessagingServer

/// Pusher's JSON: messages of clients, bodies of servers, and the session of a connection.
///
/// The first byte of the input selects one of these. Foundation's reader is the judge.
final class PusherFixture {
  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard let mode = input.first else { return }
    let rest = Array(input.dropFirst())
    switch mode & 3 {
    case 0: command(rest)
    case 1: triggers(rest, isBatch: mode & 4 != 0)
    default:
      do {
        var run = try PusherRun()
        for step in rest.split(separator: UInt8(ascii: "\n")) where !run.hasEnded {
          run.take(step[step.startIndex], Array(step.dropFirst()))
        }
      } catch {
        require(false, "a session cannot begin: \(error)")
      }
    }
  }

  // MARK: - Messages of clients

  /// A command is what Foundation reads, and the same when it is written again.
  private func command(_ text: [UInt8]) {
    guard let command = PusherProbe.command(text) else { return }
    // Foundation drops some byte order marks, also in names.
    let plain = String(decoding: text, as: UTF8.self)
    guard !plain.unicodeScalars.contains("\u{FEFF}"), !plain.lowercased().contains("feff") else {
      return
    }
    guard let event = Self.object(text), let name = event["event"] as? String else {
      return require(false, "Foundation finds no event")
    }
    let data = event["data"] as? [String: Any]
    var written: [String: Any] = ["event": name]
    switch command {
    case .ping: require(name == "pusher:ping", "a ping that is none")
    case .pong: require(name == "pusher:pong", "a pong that is none")
    case .subscribe(let channel, let auth, let channelData):
      require(name == "pusher:subscribe", "a subscription that is none")
      require(isSame(data?["channel"], channel), "another channel")
      require(isSame(data?["auth"], auth.isEmpty ? nil : auth), "another auth")
      require(isSame(data?["channel_data"], channelData), "another channel_data")
      var members = ["channel": channel, "auth": auth]
      members["channel_data"] = channelData
      written["data"] = members
    case .unsubscribe(let channel):
      require(name == "pusher:unsubscribe", "an unsubscription that is none")
      require(isSame(data?["channel"], channel), "another channel")
      written["data"] = ["channel": channel]
    case .clientEvent(let event, let channel, let text):
      require(event.utf8.starts(with: "client-".utf8), "a client event that is none")
      require(isSame(name, event), "another event")
      require(String(validating: text, as: UTF8.self) != nil, "data that is no text")
      written["event"] = event
      written["channel"] = channel
      written["data"] = String(decoding: text, as: UTF8.self)
    case .unknown:
      require(!name.hasPrefix("client-"), "a client event that is not known")
    }
    guard let again = try? JSONSerialization.data(withJSONObject: written) else { return }
    require(PusherProbe.command(Array(again)) == command, "a command changes when it is written")
  }

  private func isSame(_ found: Any?, _ text: String?) -> Bool {
    guard let found = found as? String else { return text == nil }
    return found.utf8.elementsEqual((text ?? "").utf8)
  }

  fileprivate static func object(_ text: [UInt8]) -> [String: Any]? {
    (try? JSONSerialization.jsonObject(with: Data(text))) as? [String: Any]
  }

  // MARK: - Bodies of servers

  /// What is accepted keeps the bounds, and is the same when it is written in the shortest form.
  private func triggers(_ body: [UInt8], isBatch: Bool) {
    guard let triggers = PusherProbe.triggers(body, isBatch: isBatch) else { return }
    require(
      triggers.count <= PusherProbe.maximumBatchCount && (isBatch || triggers.count == 1),
      "\(triggers.count) events")
    for trigger in triggers {
      require(
        (1...PusherProbe.maximumChannelCount).contains(trigger.channels.count),
        "\(trigger.channels.count) channels")
      require(Set(trigger.channels).count == trigger.channels.count, "a channel comes twice")
      require(trigger.channels.allSatisfy(isChannel), "a channel with a wrong name")
      require(
        (1...PusherProbe.eventNameCount).contains(trigger.name.unicodeScalars.count)
          && !trigger.name.hasPrefix("pusher:") && !trigger.name.hasPrefix("pusher_internal:")
          && trigger.name.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F },
        "an event with a wrong name")
      require(trigger.data.count <= PusherProbe.dataByteCount, "\(trigger.data.count) bytes")
      require(trigger.socketID.map(isSocketID) ?? true, "a wrong socket_id")
    }
    let events = triggers.map { trigger in
      var event: [String: Any] = [
        "name": trigger.name, "channels": trigger.channels,
        "data": String(decoding: trigger.data, as: UTF8.self),
      ]
      event["socket_id"] = trigger.socketID
      event["info"] = trigger.attributes.joined(separator: ",")
      return event
    }
    let whole: [String: Any] = isBatch ? ["batch": events] : events[0]
    guard let again = try? JSONSerialization.data(withJSONObject: whole) else { return }
    require(
      PusherProbe.triggers(Array(again), isBatch: isBatch) == triggers,
      "an event changes when it is written")
  }

  private func isChannel(_ name: String) -> Bool {
    let prefix = "#server-to-user-"
    let rest = name.hasPrefix(prefix) ? name.dropFirst(prefix.count) : name[...]
    return (1...PusherProbe.channelByteCount).contains(name.utf8.count) && !rest.isEmpty
      && rest.utf8.allSatisfy { byte in
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "_-=@,.;".utf8.contains(byte)
        }
      }
  }

  private func isSocketID(_ text: String) -> Bool {
    text.utf8.count <= 64 && text.wholeMatch(of: /[0-9]+\.[0-9]+/) != nil
  }
}

/// A session with a hostile client, and what must hold of all that it does.
///
/// A step is a line: `>` and a message of the client, or a letter for what happens beside it.
private struct PusherRun {
  /// What is known of a subscription without the session.
  private struct Subscription {
    /// The last number that the client got.
    var last: Int64 = 0
    /// The number of the read of the newest message that has not ended; nil if there is none.
    var reading: Int?
    /// What came since the read began.
    var waiting: [Int64] = []
  }

  private var session: PusherProbe.Session
  private var now: UInt64 = 1_000_000_000
  private var subscriptions: [String: Subscription] = [:]
  private var lastNumber: Int64 = 0
  private var frameCount = 0
  private var eventTimes: [UInt64] = []
  private(set) var hasEnded = false

  init() throws { session = try PusherProbe.Session() }

  mutating func take(_ kind: UInt8, _ rest: [UInt8]) {
    let text = String(decoding: rest, as: UTF8.self)
    switch kind {
    case UInt8(ascii: ">"):
      frameCount += 1
      perform(session.receive(rest, atNanoseconds: now))
      require(
        hasEnded || frameCount <= PusherProbe.Session.burstCount + elapsedFrameCount,
        "\(frameCount) frames are taken")
    case UInt8(ascii: "a"): session.isAllowed = true
    case UInt8(ascii: "n"): session.isAllowed = false
    case UInt8(ascii: "f"): session.isFull = !session.isFull
    case UInt8(ascii: "m"): deliver(to: text)
    case UInt8(ascii: "x"): deliver(to: text, isExcluded: true)
    case UInt8(ascii: "p"): deliver(to: text, isPresence: true)
    case UInt8(ascii: "c"): didRead(text, finds: true)
    case UInt8(ascii: "e"): didRead(text, finds: false)
    case UInt8(ascii: "r"): perform(session.recheck { !$0.utf8.starts(with: rest) })
    case UInt8(ascii: "t"): now += UInt64(rest.first ?? 1) * 10_000_000
    default: break
    }
    let channels = session.channels
    require(Set(channels) == Set(subscriptions.keys), "subscriptions that have not begun, or ended")
    require(
      channels.count <= PusherProbe.Session.channelCount, "\(channels.count) subscriptions")
  }

  private var elapsedFrameCount: Int {
    Int((now - 1_000_000_000) / 1_000_000_000 * UInt64(PusherProbe.Session.framesPerSecond))
      + PusherProbe.Session.framesPerSecond
  }

  /// A message of a channel is sent now or behind the newest one, once, or not at all.
  private mutating func deliver(
    to channel: String, isExcluded: Bool = false, isPresence: Bool = false
  ) {
    lastNumber += 1
    let actions = session.deliver(
      lastNumber, of: channel, isExcluded: isExcluded, isPresence: isPresence)
    let isMeant = subscriptions[channel] != nil && !isExcluded && !isPresence
    if isMeant, subscriptions[channel]?.reading != nil {
      subscriptions[channel]?.waiting.append(lastNumber)
      return require(actions.isEmpty, "a message comes before the newest one")
    }
    require(actions.count == (isMeant ? 1 : 0), "a message is lost, or comes to someone else")
    perform(actions)
  }

  private mutating func didRead(_ channel: String, finds: Bool) {
    guard let subscription = subscriptions[channel], let reading = subscription.reading else {
      let actions = session.didReadCache(channel, number: 1, lastNumber)
      return require(actions.isEmpty, "a read of an earlier subscription counts")
    }
    require(
      session.didReadCache(channel, number: reading - 1, lastNumber).isEmpty,
      "a read of another subscription counts")
    // The read finds one of those that have come since.
    let found = finds ? subscription.waiting.first ?? max(lastNumber, 1) : nil
    lastNumber = max(lastNumber, found ?? 0)
    subscriptions[channel]?.reading = nil
    let actions = session.didReadCache(channel, number: reading, found)
    let expected = (found.map { [$0] } ?? []) + subscription.waiting.filter { $0 > found ?? 0 }
    let got = actions.compactMap { self.number(of: $0) }
    require(got == expected, "the newest messages are \(got), not \(expected)")
    perform(actions)
  }

  private func number(of action: PusherProbe.Session.Action) -> Int64? {
    guard case .send(let json) = action, let event = PusherFixture.object(json),
      event["event"] as? String == "message"
    else { return nil }
    return (event["data"] as? String).flatMap { Int64($0) }
  }

  private mutating func perform(_ actions: [PusherProbe.Session.Action]) {
    for action in actions where !hasEnded {
      switch action {
      case .send(let json): sent(json)
      case .end(let code):
        require((4000...4299).contains(code), "an end with \(code)")
        hasEnded = true
      case .join(let channel):
        if subscriptions[channel] == nil { subscriptions[channel] = Subscription() }
      case .leave(let channel):
        let isThere = subscriptions.removeValue(forKey: channel) != nil
        // One that has no room was never joined.
        require(isThere || session.isFull, "a channel is left twice")
      case .readCache(let channel, let number):
        require(subscriptions[channel]?.reading == nil, "two reads at the same time")
        require(channel.contains("cache-"), "a read of a channel without a cache")
        subscriptions[channel]?.reading = number
      case .relay(let channel, let name, let data, let userID): relay(channel, name, data, userID)
      }
    }
  }

  /// What the client gets is JSON of the right form, and each message is behind the last one.
  private mutating func sent(_ json: [UInt8]) {
    guard let event = PusherFixture.object(json), let name = event["event"] as? String else {
      return require(false, "no event is sent: \(String(decoding: json, as: UTF8.self))")
    }
    let channel = event["channel"] as? String
    switch name {
    case "pusher:error":
      require(event["data"] is [String: Any] && channel == nil, "an error of the wrong form")
    case "message":
      guard let channel, let number = number(of: .send(json)) else {
        return require(false, "a message without its data")
      }
      guard let last = subscriptions[channel]?.last else {
        return require(false, "a message of a channel without a subscription")
      }
      require(number > last, "a message comes twice, or out of order")
      subscriptions[channel]?.last = number
    case "pusher:subscription_error": require(event["data"] is String, "data that is no string")
    case "pusher_internal:subscription_succeeded", "pusher:cache_miss":
      require(channel.map { subscriptions[$0] != nil } == true, "an answer without a subscription")
      guard let text = event["data"] as? String, let data = PusherFixture.object(Array(text.utf8))
      else { return require(false, "data that is no JSON") }
      let roster = (data["presence"] as? [String: Any])?["ids"] as? [String]
      let isPresence = channel?.hasPrefix("presence-") == true && name != "pusher:cache_miss"
      require((roster != nil) == isPresence, "a roster of the wrong channel")
    default: require(name == "pusher:pong", "an unknown event: \(name)")
    }
  }

  private mutating func relay(
    _ channel: String, _ name: String, _ data: [UInt8], _ userID: String?
  ) {
    require(subscriptions[channel] != nil, "a client event without a subscription")
    let isPresence = channel.hasPrefix("presence-")
    require(
      isPresence || channel.hasPrefix("private-") && !channel.hasPrefix("private-encrypted-"),
      "a client event of the wrong channel")
    require((userID != nil) == isPresence, "a user of no presence channel")
    require(name.hasPrefix("client-"), "an event of a server")
    require(name.unicodeScalars.count <= PusherProbe.eventNameCount, "a name is too long")
    require(data.count <= PusherProbe.dataByteCount, "data is too long")
    eventTimes.append(now)
    let second = eventTimes.count { $0 + 1_000_000_000 > now }
    let most = PusherProbe.Session.eventCount + PusherProbe.Session.framesPerSecond
    require(second <= most, "\(second) client events in a second")
  }
}
