extension ExchangeRecord {
  /// The line, newline included.
  var line: [UInt8] {
    var line = JSONObjectWriter()
    switch self {
    case .export(let header):
      line.add("record", "export")
      line.add("version", number: ExportHeader.version)
      line.add("id", header.id)
      line.add("source", header.source)
      line.add("after", time: header.after)
      line.add("channels", texts: header.channels, evenEmpty: true)
      header.moment.write(to: &line)
    case .channel(let channel):
      line.add("record", "channel")
      line.add("channel", channel.channel.name)
      line.add("keepsAcknowledged", flag: channel.keepsAcknowledged)
      line.add("discardsUnacknowledged", flag: channel.discardsUnacknowledged)
      line.add("longestAge", time: channel.longestAge)
      line.add("mostMessages", number: channel.mostMessages)
      line.add("mostBytes", number: channel.mostBytes)
      line.add("removedThrough", time: channel.removedThrough > 0 ? channel.removedThrough : nil)
    case .consumer(let consumer):
      line.add("record", "consumer")
      line.add("channel", consumer.channel.name)
      line.add("consumer", consumer.consumer.name)
      line.add("maximumAttempts", number: consumer.mostAttempts)
    case .message(let message):
      line.add("record", "message")
      message.write(to: &line)
    case .deduplication(let deduplication):
      line.add("record", "deduplication")
      line.add("channel", deduplication.channel.name)
      line.add("id", deduplication.id)
      line.add("timetoken", time: deduplication.timetoken)
      line.add("until", time: deduplication.until)
    case .resumed(let moment):
      line.add("record", "resumed")
      moment.write(to: &line)
    case .end(let end):
      line.add("record", "end")
      line.add("messages", number: end.messageCount)
      line.add("lines", number: end.lineCount)
      line.add("sha256", end.sha256)
    }
    return line.line
  }
}

extension ExportMoment {
  fileprivate func write(to line: inout JSONObjectWriter) {
    line.add("commitNumber", number: commitNumber)
    line.add("highWater", time: highWater)
  }
}

extension ExportedMessage {
  fileprivate func write(to line: inout JSONObjectWriter) {
    line.add("timetoken", time: timetoken)
    line.add("channel", channel.name)
    line.add("priority", number: priority == .normal ? nil : priority.rawValue)
    line.add("due", time: due)
    line.add("expires", time: expires)
    line.add("orderingKey", orderingKey)
    line.add("headers", texts: headers)
    line.add("payload", orBase64: "payloadBase64", payload)
    line.add("settledBy", texts: settledBy.map(\.name))
    line.add("deliveries", objects: deliveries.map(\.object))
    line.add("deadLetters", objects: deadLetters.map(\.object))
  }
}

extension ExportedMessage.Delivery {
  fileprivate var object: JSONObjectWriter {
    var object = JSONObjectWriter()
    object.add("consumer", consumer.name)
    object.add("attempts", number: attemptCount)
    object.add("leased", flag: isLeased)
    object.add("due", time: due)
    object.add("failures", objects: failures.map(\.object))
    return object
  }
}

extension ExportedMessage.DeadLetter {
  fileprivate var object: JSONObjectWriter {
    var object = JSONObjectWriter()
    object.add("consumer", consumer.name)
    object.add("attempts", number: attemptCount)
    object.add("reason", reason)
    object.add("died", time: died)
    object.add("failures", objects: failures.map(\.object))
    return object
  }
}

extension DeliveryFailure {
  fileprivate var object: JSONObjectWriter {
    var object = JSONObjectWriter()
    object.add("attempt", number: attempt)
    object.add("time", time: time)
    object.add("reason", reason)
    return object
  }
}
