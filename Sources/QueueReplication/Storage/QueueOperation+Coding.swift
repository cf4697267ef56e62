internal import MessagingQueue
internal import Replication

/// The bytes of a change of the queue in a record: `docs/reference/replication-format.md`, "Operations".
///
/// A message is named by its origin, as its place can change.
extension QueueOperation {
  fileprivate enum Kind: UInt8 {
    case addConsumer = 1
    case removeConsumer, redrive, removeDeadLetters, setRetention, purge, cancel, sweep,
      keepAcknowledged, sweepApplication, removeChannels, reservePlaces, addMissingConsumer
  }

  /// - Parameter origin: that of a message; nil if the log does not have it.
  func encoded(_ origin: (Timetoken) throws -> MessageOrigin?) throws -> [UInt8] {
    var writer = RecordWriter()
    switch self {
    case .addConsumer(let consumer, let channel, let most):
      writer.begin(.addConsumer, channel)
      writer.append(consumer.name)
      writer.appendOptional(most) { $0.append(UInt32(clamping: $1)) }
    case .addMissingConsumer(let consumer, let channel):
      writer.begin(.addMissingConsumer, channel)
      writer.append(consumer.name)
    case .removeConsumer(let consumer, let channel):
      writer.begin(.removeConsumer, channel)
      writer.append(consumer.name)
    case .redrive(let timetokens, let channel, let consumer):
      writer.begin(.redrive, channel)
      writer.append(consumer.name)
      try writer.append(timetokens, origin)
    case .removeDeadLetters(let timetokens, let channel, let consumer):
      writer.begin(.removeDeadLetters, channel)
      writer.append(consumer.name)
      try writer.append(timetokens, origin)
    case .setRetention(let retention, let channel):
      writer.begin(.setRetention, channel)
      writer.append(retention)
    case .purge(let channel, let start, let end, let count):
      writer.begin(.purge, channel)
      writer.append(start)
      writer.append(end)
      writer.append(UInt32(clamping: count))
    case .cancel(let timetokens, let channel):
      writer.begin(.cancel, channel)
      try writer.append(timetokens, origin)
    case .sweep(let channel, let start, let count):
      writer.begin(.sweep, channel)
      writer.append(start)
      writer.append(UInt32(clamping: count))
    case .keepAcknowledged(let application):
      writer.append(Kind.keepAcknowledged.rawValue)
      writer.append(application)
    case .sweepApplication(let application, let before, let channels, let start, let count):
      writer.append(Kind.sweepApplication.rawValue)
      writer.append(application)
      writer.append(before)
      writer.append(start)
      writer.append(UInt32(clamping: count))
      writer.append(channels)
    case .removeChannels(let application, let before, let channels):
      writer.append(Kind.removeChannels.rawValue)
      writer.append(application)
      writer.append(before)
      writer.append(channels)
    case .reservePlaces(let count):
      writer.append(Kind.reservePlaces.rawValue)
      writer.append(UInt64(count))
    }
    return writer.bytes
  }

  /// Reads the bytes of a record.
  ///
  /// - Parameter timetoken: the place of a message; nil if the log does not have it.
  /// - Throws: ``RecordError``; `invalidArgument` and the like for a name or a number that no engine accepts.
  init(decoding bytes: [UInt8], _ timetoken: (MessageOrigin) throws -> Timetoken?) throws {
    var reader = RecordReader(bytes)
    guard let kind = Kind(rawValue: try reader.byte()) else { throw RecordError.unknownKind }
    let name = try kind == .reservePlaces ? "" : reader.text()
    func channel() throws -> Channel { try Channel(name) }
    switch kind {
    case .addConsumer:
      let consumer = try Consumer(reader.text())
      let most: UInt32? = try reader.optional { reader throws(RecordError) in try reader.number() }
      self = .addConsumer(consumer, of: try channel(), maximumAttempts: most.map(Int.init))
    case .addMissingConsumer:
      self = .addMissingConsumer(try Consumer(reader.text()), of: try channel())
    case .removeConsumer: self = .removeConsumer(try Consumer(reader.text()), of: try channel())
    case .redrive:
      let consumer = try Consumer(reader.text())
      self = .redrive(try reader.timetokens(timetoken), of: try channel(), for: consumer)
    case .removeDeadLetters:
      let consumer = try Consumer(reader.text())
      self = .removeDeadLetters(try reader.timetokens(timetoken), of: try channel(), for: consumer)
    case .setRetention: self = .setRetention(try reader.retention(), of: try channel())
    case .purge:
      let start = try reader.place()
      let end = try reader.place()
      self = .purge(
        try channel(), after: start, before: end, count: Int(try reader.number(UInt32.self)))
    case .cancel:
      guard let timetokens = try reader.timetokens(timetoken) else { throw RecordError.invalidFlag }
      self = .cancel(timetokens, of: try channel())
    case .sweep:
      let start = try reader.place()
      self = .sweep(try channel(), after: start, count: Int(try reader.number(UInt32.self)))
    case .keepAcknowledged: self = .keepAcknowledged(application: name)
    case .sweepApplication:
      let before = try reader.requiredPlace()
      let start = try reader.place()
      let count = Int(try reader.number(UInt32.self))
      self = .sweepApplication(
        name, before: before, channels: try reader.numbers(), after: start, count: count)
    case .removeChannels:
      let before = try reader.requiredPlace()
      self = .removeChannels(application: name, before: before, try reader.numbers())
    case .reservePlaces:
      self = .reservePlaces(count: try reader.positive())
    }
    guard reader.isAtEnd else { throw RecordError.trailing }
  }
}

extension RecordWriter {
  fileprivate mutating func begin(_ kind: QueueOperation.Kind, _ channel: Channel) {
    append(kind.rawValue)
    append(channel.name)
  }

  mutating func append(_ place: Timetoken) { append(UInt64(place.rawValue)) }

  mutating func append(_ place: Timetoken?) {
    appendOptional(place) { $0.append($1 as Timetoken) }
  }

  mutating func append(_ numbers: [Int64]) {
    append(UInt32(numbers.count))
    for number in numbers { append(UInt64(number)) }
  }

  fileprivate mutating func append(
    _ timetokens: [Timetoken]?, _ origin: (Timetoken) throws -> MessageOrigin?
  ) throws {
    let origins = try timetokens?.compactMap(origin)
    appendOptional(origins) { writer, origins in
      writer.append(UInt32(origins.count))
      for origin in origins { writer.append(origin) }
    }
  }

  fileprivate mutating func append(_ retention: Retention) {
    append(UInt8(retention.keepsAcknowledged ? 1 : 0))
    append(UInt8(retention.discardsUnacknowledged ? 1 : 0))
    let age = retention.maximumAge.map { age in
      age.components.seconds * 10_000_000 + age.components.attoseconds / 100_000_000_000
    }
    for limit in [
      age, retention.maximumMessageCount.map(Int64.init),
      retention.maximumByteCount.map(Int64.init),
    ] {
      appendOptional(limit) { $0.append(UInt64($1)) }
    }
  }
}

extension RecordReader {
  mutating func positive() throws(RecordError) -> Int64 {
    guard let number = Int64(exactly: try number(UInt64.self)) else {
      throw RecordError.outOfRange
    }
    return number
  }

  fileprivate mutating func requiredPlace() throws(RecordError) -> Timetoken {
    Timetoken(unchecked: try positive())
  }

  mutating func place() throws(RecordError) -> Timetoken? {
    try optional { reader throws(RecordError) in try reader.requiredPlace() }
  }

  mutating func numbers() throws(RecordError) -> [Int64] {
    let count: UInt32 = try number()
    var numbers: [Int64] = []
    for _ in 0..<count { numbers.append(try positive()) }
    return numbers
  }

  fileprivate mutating func timetokens(
    _ timetoken: (MessageOrigin) throws -> Timetoken?
  ) throws -> [Timetoken]? {
    guard try flag() else { return nil }
    let count: UInt32 = try number()
    var timetokens: [Timetoken] = []
    for _ in 0..<count {
      if let found = try timetoken(try origin()) { timetokens.append(found) }
    }
    return timetokens
  }

  fileprivate mutating func retention() throws(RecordError) -> Retention {
    var retention = Retention()
    retention.keepsAcknowledged = try flag()
    retention.discardsUnacknowledged = try flag()
    var limits: [Int64?] = []
    for _ in 0..<3 {
      limits.append(
        try optional { reader throws(RecordError) in try reader.positive() })
    }
    retention.maximumAge = limits[0].map { .nanoseconds(100) * $0 }
    retention.maximumMessageCount = limits[1].map { Int(clamping: $0) }
    retention.maximumByteCount = limits[2].map { Int(clamping: $0) }
    return retention
  }
}
