internal import FileLayer
internal import Foundation
internal import GRDB

extension EngineDatabase {
  /// Stores messages in the order given, all or none, and returns their timetokens.
  ///
  /// On return they are on the disk.
  package func publish(_ messages: [Message]) throws(EngineError) -> [Timetoken] {
    try checkPayloads(messages)
    if messages.isEmpty { return [] }
    return try write(during: "publishing") { db in try publish(messages, in: db) }
  }

  /// The same as a part of the caller's transaction; the payloads have been checked.
  func publish(_ messages: [Message], in db: Database) throws -> [Timetoken] {
    var clock = try TimetokenClock(db, now: time.now)
    var channelIDs: [Channel: Int64] = [:]
    let insertMessage = try db.cachedStatement(
      sql: "INSERT INTO message (timetoken, channel_id, payload) VALUES (?, ?, ?)")
    let insertDelivery = try db.cachedStatement(
      sql: "INSERT INTO delivery (timetoken, channel_id) VALUES (?, ?)")
    var timetokens: [Timetoken] = []
    timetokens.reserveCapacity(messages.count)
    for message in messages {
      let channelID =
        try channelIDs[message.channel] ?? Self.channelID(message.channel, making: true, db)
      channelIDs[message.channel] = channelID
      let timetoken = clock.next()
      try insertMessage.execute(
        arguments: [timetoken.rawValue, channelID, Data(message.payload)])
      try insertDelivery.execute(arguments: [timetoken.rawValue, channelID])
      timetokens.append(timetoken)
    }
    bell.announce(timetokens, after: clock.start, in: Set(channelIDs.keys))
    try clock.store(db)
    return timetokens
  }

  func checkPayloads(_ messages: [Message]) throws(EngineError) {
    let limit = configuration.maximumPayloadByteCount
    for (index, message) in messages.enumerated() where message.payload.count > limit {
      let which = messages.count == 1 ? "the message" : "message \(index + 1) of \(messages.count)"
      throw EngineError(
        .payloadTooLarge, "\(which) has \(message.payload.count) bytes, the limit is \(limit)",
        hint: "split it, or raise the engine's maximumPayloadByteCount")
    }
  }
}
