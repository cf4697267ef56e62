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
    run {
      var budget = AnswerBudget()
      let messages = try await HistoryReader(self).messages(
        of: channel, call, count: count, &budget
      ) { Self.version2($0, call) }
      let bounds = [messages.first, messages.last].map {
        Self.timetoken($0?.place.description ?? "0", call)
      }
      let list = Self.list(messages)
      return HTTPResponse(200, "[".utf8 + list + ",\(bounds[0]),\(bounds[1])]".utf8)
    }
  }

  private static func timetoken(_ text: String, _ call: HistoryCall) -> String {
    call.includes.contains(.textTimetokens) ? "\"\(text)\"" : text
  }

  private static func list(_ messages: [HistoryReader.Found]) -> [UInt8] {
    var json = JSONListBuilder("[")
    for message in messages {
      json.beginElement()
      json.bytes += message.json
    }
    return json.bytes + "]".utf8
  }

  private static func version2(_ message: LogMessage, _ call: HistoryCall) -> [UInt8] {
    let payload = PayloadJSON(message.payload)
    guard !call.includes.isDisjoint(with: [.timetoken, .meta]) else { return payload.bytes }
    var json = #"{"message":"#.utf8 + payload.bytes
    if call.includes.contains(.timetoken) {
      json += #","timetoken":\#(timetoken(message.timetoken.description, call))"#.utf8
    }
    if call.includes.contains(.meta) {
      json += #","meta":\#(payload.meta(MessageNotes(message.headers)) ?? "\"\"")"#.utf8
    }
    return json + "}".utf8
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
    run {
      var budget = AnswerBudget()
      var json = JSONListBuilder(
        #"{"status":200,"error":false,"error_message":"","channels":{"#)
      for (name, channel) in channels {
        let messages = try await HistoryReader(self).messages(
          of: channel, call, count: count, &budget
        ) { Self.version3($0, call) }
        guard !messages.isEmpty else { continue }
        json.beginMember(name.text)
        json.bytes += Self.list(messages)
      }
      return HTTPResponse(200, json.bytes + "}}".utf8)
    }
  }

  private static func version3(_ message: LogMessage, _ call: HistoryCall) -> [UInt8] {
    let notes = MessageNotes(message.headers)
    let payload = PayloadJSON(message.payload)
    var json = #"{"message":"#.utf8 + payload.bytes
    json += #","timetoken":"\#(message.timetoken)""#.utf8
    if call.includes.contains(.userID), let publisher = notes.publisher {
      json += #","uuid":"#.utf8
      JSONText.append(quoting: publisher, to: &json)
    }
    if call.includes.contains(.meta) {
      json += #","meta":\#(payload.meta(notes) ?? "\"\"")"#.utf8
    }
    if call.includes.contains(.messageType) { json += #","message_type":null"#.utf8 }
    if call.includes.contains(.customType), let type = notes.customType {
      json += #","custom_message_type":"#.utf8
      JSONText.append(quoting: type, to: &json)
    }
    return json + "}".utf8
  }

  /// How many messages each channel has after a place, up to a maximum.
  func messageCounts(
    _ places: [(channel: ChannelName, after: Timetoken)]
  ) throws(PubNubRefusal) {
    guard places.count <= Self.maximumChannelCount else { throw .invalidArguments(.history) }
    guard isAllowed(.messageCounts, channels: places.map(\.channel)) else { return }
    let channels = Array(zip(places, try channels(places.map(\.channel))))
    run {
      var counts: [JSONMember] = []
      for (place, channel) in channels {
        let count = try await home.engine.messageCount(
          of: channel, after: place.after, maximumCount: AnswerBudget.maximumMessageCount)
        counts.append(JSONMember(place.channel.text, .integer(Int64(count))))
        try await endSlice()
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
  /// A message as an answer has it.
  typealias Found = (place: Timetoken, json: [UInt8])

  /// The messages that are read together, after the first read has found too few to show.
  private static let pageCount = 100

  private let exchange: PubNubExchange
  private let now: Date

  init(_ exchange: PubNubExchange) {
    self.exchange = exchange
    now = exchange.home.now()
  }

  /// The newest messages between the call's bounds, or the oldest if it is reversed; the oldest comes first.
  ///
  /// - Throws: a refusal if there are none to show among as many as the budget has; `CancellationError` if the client
  ///   has left.
  func messages(
    of channel: Channel, _ call: HistoryCall, count: Int, _ budget: inout AnswerBudget,
    _ encode: (LogMessage) -> [UInt8]
  ) async throws -> [Found] {
    var found: [Found] = []
    var cursor = call.start
    var pageCount = count
    reading: while found.count < count {
      let page = try await exchange.home.engine.history(
        of: channel, in: call.isReversed ? .oldestFirst : .newestFirst, from: cursor,
        maximumCount: pageCount)
      guard let last = page.last?.timetoken else { break }
      for message in page {
        if let end = call.end,
          call.isReversed ? message.timetoken > end : message.timetoken < end
        {
          break reading
        }
        guard MessageNotes(message.headers).isInHistory(at: now) else {
          budget.takeHidden()
          continue
        }
        let json = encode(message)
        guard found.count < count, budget.take(byteCount: json.count + 1) else { break reading }
        found.append((message.timetoken, json))
      }
      guard budget.hasHidden else {
        guard found.isEmpty else { break }
        throw PubNubRefusal(
          .history, 400,
          "No message to show among \(AnswerBudget.maximumMessageCount): continue with start=\(last)"
        )
      }
      cursor = last
      pageCount = Self.pageCount
      try await exchange.endSlice()
    }
    return call.isReversed ? found : found.reversed()
  }
}
