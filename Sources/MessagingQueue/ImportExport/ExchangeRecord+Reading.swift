internal import StrictJSON

/// The fault in a line, as the end of a sentence that begins with the line's number.
struct LineFault: Error, Hashable {
  let reason: String

  init(_ reason: String) { self.reason = reason }
}

extension ExchangeRecord {
  /// Reads a line without its newline; refuses everything that `docs/reference/message-export.md` does not
  /// name.
  init(_ line: [UInt8]) throws(LineFault) {
    let members: [JSONMember]
    do throws(JSONFault) {
      members = try JSONLine(line).members
    } catch {
      throw LineFault("\(error)")
    }
    var object = MemberReader(members)
    guard let record = try object.optionalText("record") else {
      throw LineFault("has no member record: this is not an export of messages")
    }
    switch record {
    case "export": self = .export(try ExportHeader(&object))
    case "channel": self = .channel(try ExportedChannel(&object))
    case "consumer": self = .consumer(try ExportedConsumer(&object))
    case "message": self = .message(try ExportedMessage(&object))
    case "deduplication": self = .deduplication(try ExportedDeduplication(&object))
    case "resumed": self = .resumed(try ExportMoment(&object))
    case "end": self = .end(try ExportEnd(&object))
    default: throw LineFault("is a record of an unknown kind")
    }
    try object.requireAllRead()
  }
}

extension ExportHeader {
  fileprivate init(_ object: inout MemberReader) throws(LineFault) {
    guard try object.number("version") == Self.version else {
      throw LineFault("is of another version of this format: use the software that wrote it")
    }
    id = try object.hexadecimal("id", byteCount: 16)
    source = try object.hexadecimal("source", byteCount: 16)
    after = try object.optionalTime("after")
    channels = try object.optionalElements("channels")?.map { value throws(LineFault) in
      guard let name = value.string else {
        throw LineFault("has a name in channels that is not a string")
      }
      return try checked(name: name, "channel")
    }
    moment = try ExportMoment(&object)
  }
}

extension ExportMoment {
  fileprivate init(_ object: inout MemberReader) throws(LineFault) {
    commitNumber = try object.number("commitNumber")
    highWater = try object.time("highWater")
  }
}

extension ExportedChannel {
  fileprivate init(_ object: inout MemberReader) throws(LineFault) {
    channel = try object.channel()
    retention.keepsAcknowledged = try object.flag("keepsAcknowledged")
    retention.discardsUnacknowledged = try object.flag("discardsUnacknowledged")
    retention.maximumAge = try object.optionalTime("longestAge").map { .nanoseconds(100) * $0 }
    retention.maximumMessageCount = try object.optionalNumber("mostMessages")
    retention.maximumByteCount = try object.optionalNumber("mostBytes")
    for limit in [retention.maximumMessageCount, retention.maximumByteCount] {
      if let limit, limit > Retention.greatestLimit { throw LineFault("has a limit of \(limit)") }
    }
    removedThrough = try object.optionalTime("removedThrough") ?? 0
  }
}

extension ExportedConsumer {
  fileprivate init(_ object: inout MemberReader) throws(LineFault) {
    channel = try object.channel()
    consumer = try object.consumer()
    maximumAttempts = try object.optionalNumber("maximumAttempts")
    if let maximumAttempts, !EngineDatabase.maximumAttemptsRange.contains(maximumAttempts) {
      throw LineFault("has maximumAttempts of \(maximumAttempts)")
    }
  }
}

extension ExportedMessage {
  fileprivate init(_ object: inout MemberReader) throws(LineFault) {
    timetoken = try object.timetoken()
    channel = try object.channel()
    if let number = try object.optionalNumber("priority") {
      guard (0...9).contains(number) else { throw LineFault("has a priority outside 0 to 9") }
      priority = Priority(stored: number)
    }
    due = try object.optionalTime("due")
    expires = try object.optionalTime("expires")
    if let key = try object.optionalText("orderingKey") {
      orderingKey = try checked(name: key, "ordering key")
    }
    guard orderingKey == nil || priority == .normal else {
      throw LineFault("has an ordering key and a priority")
    }
    for member in try object.optionalMembers("headers") ?? [] {
      guard let text = member.value.string else {
        throw LineFault("has a header that is not a string")
      }
      guard headers.updateValue(text, forKey: try checked(name: member.name, "header")) == nil
      else {
        throw LineFault("has two headers with one name")
      }
    }
    switch (try object.optionalText("payload"), try object.optionalText("payloadBase64")) {
    case (let text?, nil): payload = Array(text.utf8)
    case (nil, let text?):
      guard let bytes = Base64Text.decode(text) else {
        throw LineFault("has a payloadBase64 that is not base64")
      }
      payload = bytes
    default: throw LineFault("needs exactly one of payload and payloadBase64")
    }
    settledBy =
      try object.optionalElements("settledBy")?.map { value throws(LineFault) in
        guard let name = value.string else {
          throw LineFault("has a consumer that is not a string")
        }
        return Consumer(stored: try checked(name: name, "consumer"))
      } ?? []
    deliveries = try object.objects("deliveries", Delivery.init(_:))
    deadLetters = try object.objects("deadLetters", DeadLetter.init(_:))
    let consumers = settledBy + deliveries.map(\.consumer) + deadLetters.map(\.consumer)
    guard Set(consumers).count == consumers.count else {
      throw LineFault("has two states for one consumer")
    }
  }
}

extension ExportedMessage.Delivery {
  fileprivate init(_ object: inout MemberReader) throws(LineFault) {
    consumer = try object.consumer()
    attemptCount = try object.attemptCount("attempts")
    isLeased = try object.flag("leased")
    due = try object.optionalTime("due")
    failures = try DeliveryFailure.list(&object)
    if isLeased, attemptCount == 0 || due != nil {
      throw LineFault("has a delivery that is leased, and delayed or never tried")
    }
  }
}

extension ExportedMessage.DeadLetter {
  fileprivate init(_ object: inout MemberReader) throws(LineFault) {
    consumer = try object.consumer()
    attemptCount = try object.attemptCount("attempts")
    reason = try object.reason()
    died = try object.time("died")
    failures = try DeliveryFailure.list(&object)
  }
}

extension DeliveryFailure {
  fileprivate static func list(_ object: inout MemberReader) throws(LineFault) -> [DeliveryFailure]
  {
    let failures = try object.objects("failures") { object throws(LineFault) in
      DeliveryFailure(
        attempt: try object.attemptCount("attempt"), ticks: try object.time("time"),
        reason: try object.reason())
    }
    guard failures.count <= keptCount else {
      throw LineFault("has more than \(keptCount) failures of one consumer")
    }
    return failures
  }
}

extension ExportedDeduplication {
  fileprivate init(_ object: inout MemberReader) throws(LineFault) {
    channel = try object.channel()
    id = try checked(name: object.text("id"), "deduplication id")
    timetoken = try object.timetoken()
    until = try object.time("until")
  }
}

extension ExportEnd {
  fileprivate init(_ object: inout MemberReader) throws(LineFault) {
    messageCount = try object.number("messages")
    lineCount = try object.number("lines")
    sha256 = try object.optionalHexadecimal("sha256", byteCount: 32)
  }
}

/// Checks a name, a key or an id by the rules for names.
private func checked(name: String, _ what: String) throws(LineFault) -> String {
  if let fault = Name.fault(in: name) { throw LineFault("has a name of a \(what) that \(fault)") }
  return name
}
