internal import AccessControl
internal import Foundation
internal import MessagingQueue
internal import StrictJSON

extension PubNubExchange {
  /// The most messages of a channel in an answer, for one channel.
  private static let maximumCount = 100
  /// The most messages of a channel in an answer about several.
  private static let maximumCountOfSeveral = 25
  /// The most channels in a call.
  private static let maximumChannelCount = 500

  /// Version 2: messages of one channel.
  func history(_ call: HistoryCall) throws(PubNubRefusal) {
    guard isAllowed(.history, channels: call.channels) else { return }
    let channel = try channel(call.channels[0])
    let count = min(call.count ?? Self.maximumCount, Self.maximumCount)
    run { [home] in
      let reader = HistoryReader(home.engine, now: home.now())
      var budget = HistoryReader.byteBudget
      let messages = try await reader.messages(
        of: channel, call, count: count, byteBudget: &budget)
      return HTTPResponse(200, Self.version2(messages, call))
    }
  }

  private static func version2(_ messages: [LogMessage], _ call: HistoryCall) -> [UInt8] {
    func timetoken(_ message: LogMessage?) -> String {
      let text = message?.timetoken.description ?? "0"
      return call.includes.contains(.textTimetokens) ? "\"\(text)\"" : text
    }
    var json = JSONListBuilder("[[")
    for message in messages {
      let payload = PayloadJSON(message.payload)
      json.beginElement()
      guard !call.includes.isDisjoint(with: [.timetoken, .meta]) else {
        json.bytes += payload.bytes
        continue
      }
      json.bytes += #"{"message":"#.utf8
      json.bytes += payload.bytes
      if call.includes.contains(.timetoken) {
        json.bytes += #","timetoken":\#(timetoken(message))"#.utf8
      }
      if call.includes.contains(.meta) {
        json.bytes += #","meta":\#(payload.meta(MessageNotes(message.headers)) ?? "\"\"")"#.utf8
      }
      json.bytes.append(UInt8(ascii: "}"))
    }
    json.bytes += "],\(timetoken(messages.first)),\(timetoken(messages.last))]".utf8
    return json.bytes
  }

  /// Version 3: messages of several channels.
  func fetch(_ call: HistoryCall) throws(PubNubRefusal) {
    guard call.channels.count <= Self.maximumChannelCount else {
      throw .invalidArguments(.history)
    }
    guard isAllowed(.fetch, channels: call.channels) else { return }
    let channels = Array(zip(call.channels, try channels(call.channels)))
    let most = channels.count == 1 ? Self.maximumCount : Self.maximumCountOfSeveral
    let count = min(call.count ?? most, most)
    run { [home] in
      let reader = HistoryReader(home.engine, now: home.now())
      var budget = HistoryReader.byteBudget
      var json = JSONListBuilder(
        #"{"status":200,"error":false,"error_message":"","channels":{"#)
      for (name, channel) in channels {
        let messages = try await reader.messages(
          of: channel, call, count: count, byteBudget: &budget)
        guard !messages.isEmpty else { continue }
        json.beginElement()
        JSONText.append(quoting: name.text, to: &json.bytes)
        json.bytes += Self.version3(messages, call)
      }
      json.bytes += "}}".utf8
      return HTTPResponse(200, json.bytes)
    }
  }

  private static func version3(_ messages: [LogMessage], _ call: HistoryCall) -> [UInt8] {
    var json = JSONListBuilder(":[")
    for message in messages {
      let notes = MessageNotes(message.headers)
      let payload = PayloadJSON(message.payload)
      json.beginElement()
      json.bytes += #"{"message":"#.utf8
      json.bytes += payload.bytes
      json.bytes += #","timetoken":"\#(message.timetoken)""#.utf8
      if call.includes.contains(.userID), let publisher = notes.publisher {
        json.bytes += #","uuid":"#.utf8
        JSONText.append(quoting: publisher, to: &json.bytes)
      }
      if call.includes.contains(.meta) {
        json.bytes += #","meta":\#(payload.meta(notes) ?? "\"\"")"#.utf8
      }
      if call.includes.contains(.messageType) { json.bytes += #","message_type":null"#.utf8 }
      if call.includes.contains(.customType), let type = notes.customType {
        json.bytes += #","custom_message_type":"#.utf8
        JSONText.append(quoting: type, to: &json.bytes)
      }
      json.bytes.append(UInt8(ascii: "}"))
    }
    json.bytes.append(UInt8(ascii: "]"))
    return json.bytes
  }

  /// How many messages each channel has after a place.
  func messageCounts(
    _ places: [(channel: ChannelName, after: Timetoken)]
  ) throws(PubNubRefusal) {
    guard places.count <= Self.maximumChannelCount else { throw .invalidArguments(.history) }
    guard isAllowed(.messageCounts, channels: places.map(\.channel)) else { return }
    let channels = Array(zip(places, try channels(places.map(\.channel))))
    run { [home] in
      var counts: [JSONMember] = []
      for (place, channel) in channels {
        let count = try await home.engine.messageCount(of: channel, after: place.after)
        counts.append(JSONMember(place.channel.text, .integer(Int64(count))))
      }
      return HTTPResponse(
        json: [
          "status": 200, "error": false, "error_message": "", "channels": .object(counts),
        ])
    }
  }

  /// Deletes the messages before `start` and from `end` on; without them, all of the channel.
  func deleteMessages(_ call: HistoryCall) throws(PubNubRefusal) {
    guard isAllowed(.deleteMessages, channels: call.channels) else { return }
    let channel = try channel(call.channels[0])
    run { [home] in
      _ = try await home.engine.removeMessages(
        of: channel, from: call.end, before: call.start)
      return HTTPResponse(json: ["status": 200, "error": false, "error_message": ""])
    }
  }
}

/// Reads the messages that history shows.
struct HistoryReader: Sendable {
  /// The most bytes of payloads in one answer; what does not fit is left out, and its client reads on.
  static let byteBudget = 4 << 20

  private let engine: MessagingEngine
  private let now: Date

  init(_ engine: MessagingEngine, now: Date) {
    self.engine = engine
    self.now = now
  }

  /// The newest messages between the call's bounds, or the oldest if it is reversed; the oldest comes first.
  ///
  /// - Parameter byteBudget: reduced by what was read. A first message is read unless nothing is left of it.
  func messages(
    of channel: Channel, _ call: HistoryCall, count: Int, byteBudget: inout Int
  ) async throws -> [LogMessage] {
    var found: [LogMessage] = []
    var cursor = call.start
    reading: while found.count < count, byteBudget > 0 {
      let page = try await engine.history(
        of: channel, in: call.isReversed ? .oldestFirst : .newestFirst, from: cursor,
        maximumCount: count)
      guard !page.isEmpty else { break }
      for message in page {
        if let end = call.end,
          call.isReversed ? message.timetoken > end : message.timetoken < end
        {
          break reading
        }
        guard MessageNotes(message.headers).isInHistory(at: now) else { continue }
        guard found.count < count, found.isEmpty || message.payload.count <= byteBudget else {
          break reading
        }
        found.append(message)
        byteBudget -= message.payload.count
      }
      cursor = page.last?.timetoken
    }
    return call.isReversed ? found : found.reversed()
  }
}
