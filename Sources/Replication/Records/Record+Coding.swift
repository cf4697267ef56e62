extension Record {
  /// The most messages of one commit.
  package static let mostMessages = 100_000

  private enum Kind: UInt8 {
    case commit = 1
    case settlement, epoch, heartbeat, report, join, leave, trim, operation, rows, keySwitch,
      keyDrop, repair
  }

  /// The bytes that are sealed, in parts if they are many.
  package var encoded: [UInt8] {
    var writer = RecordWriter()
    writer.append(kind.rawValue)
    writer.append(UInt64(bitPattern: time))
    write(to: &writer)
    return writer.bytes
  }

  private var kind: Kind {
    switch body {
    case .commit: .commit
    case .settlement: .settlement
    case .epoch: .epoch
    case .heartbeat: .heartbeat
    case .report: .report
    case .join: .join
    case .leave: .leave
    case .trim: .trim
    case .operation: .operation
    case .rows: .rows
    case .keySwitch: .keySwitch
    case .keyDrop: .keyDrop
    case .repair: .repair
    }
  }

  private func write(to writer: inout RecordWriter) {
    switch body {
    case .commit(let messages):
      writer.append(UInt32(messages.count))
      for message in messages { message.write(to: &writer) }
    case .settlement(let settlement): settlement.write(to: &writer)
    case .epoch(let epoch, let predecessor, let member):
      writer.append(epoch)
      writer.appendOptional(predecessor) { $0.append($1) }
      writer.append(member)
    case .heartbeat(let epoch, let beat):
      writer.append(epoch)
      writer.append(beat)
    case .report(let member, let safe, let digest, let newestKey, let oldestKey):
      writer.append(member)
      writer.append(safe)
      writer.append(digest.bytes)
      writer.append(newestKey)
      writer.append(oldestKey)
    case .join(let member, let safe):
      writer.append(member)
      writer.appendOptional(safe) { $0.append($1) }
    case .leave(let member): writer.append(member)
    case .trim(let position): writer.append(position)
    case .operation(let bytes), .rows(let bytes): writer.appendBlock(bytes)
    case .keySwitch(let key), .keyDrop(let key): writer.append(key)
    case .repair(let from, let to):
      writer.append(UInt64(bitPattern: from))
      writer.append(UInt64(bitPattern: to))
    }
  }

  /// Reads a record, all of its parts in one.
  ///
  /// - Throws: ``RecordError`` for an unknown kind, and for bytes that do not end with the last field.
  package init(decoding bytes: [UInt8]) throws(RecordError) {
    var reader = RecordReader(bytes)
    guard let kind = Kind(rawValue: try reader.byte()) else { throw RecordError.unknownKind }
    time = Int64(bitPattern: try reader.number())
    body = try Self.readBody(kind, &reader)
    guard reader.isAtEnd else { throw RecordError.trailing }
  }

  private static func readBody(_ kind: Kind, _ reader: inout RecordReader) throws(RecordError)
    -> Body
  {
    switch kind {
    case .commit:
      let count = Int(try reader.number(UInt32.self))
      guard count <= mostMessages else { throw RecordError.outOfRange }
      var messages: [PublishedMessage] = []
      for _ in 0..<count { messages.append(try PublishedMessage(&reader)) }
      return .commit(messages)
    case .settlement: return .settlement(try Settlement(&reader))
    case .epoch:
      let epoch: EpochID = try reader.identifier()
      let predecessor: EpochID? = try reader.optional { (reader) throws(RecordError) in
        try reader.identifier()
      }
      return .epoch(epoch, predecessor: predecessor, try reader.identifier())
    case .heartbeat: return .heartbeat(try reader.identifier(), beat: try reader.number())
    case .report:
      return .report(
        try reader.identifier(), safe: try reader.number(), RecordDigest(bytes: try reader.raw(32)),
        newestKey: try reader.number(), oldestKey: try reader.number())
    case .join:
      let member: MemberID = try reader.identifier()
      let safe: UInt64? = try reader.optional { (reader) throws(RecordError) in try reader.number()
      }
      return .join(member, safe: safe)
    case .leave: return .leave(try reader.identifier())
    case .trim: return .trim(through: try reader.number())
    case .operation: return .operation(try reader.block())
    case .rows: return .rows(try reader.block())
    case .keySwitch: return .keySwitch(try reader.number())
    case .keyDrop: return .keyDrop(try reader.number())
    case .repair:
      return .repair(
        from: Int64(bitPattern: try reader.number()), to: Int64(bitPattern: try reader.number()))
    }
  }
}

extension PublishedMessage {
  fileprivate func write(to writer: inout RecordWriter) {
    writer.append(channel)
    writer.appendOptional(deduplicationID) { $0.append($1) }
    writer.appendOptional(orderingKey) { $0.append($1) }
    writer.appendBlock(content)
  }

  fileprivate init(_ reader: inout RecordReader) throws(RecordError) {
    channel = try reader.text()
    deduplicationID = try reader.optional { (reader) throws(RecordError) in try reader.text() }
    orderingKey = try reader.optional { (reader) throws(RecordError) in try reader.text() }
    content = try reader.block()
  }
}

extension Settlement {
  fileprivate func write(to writer: inout RecordWriter) {
    writer.append(consumer)
    writer.append(message)
    writer.append(lease)
    writer.append(epoch)
    outcome.write(to: &writer)
    writer.appendOptional(due) { $0.append(UInt64(bitPattern: $1)) }
  }

  fileprivate init(_ reader: inout RecordReader) throws(RecordError) {
    consumer = try reader.text()
    message = try reader.origin()
    lease = try reader.identifier()
    epoch = try reader.identifier()
    outcome = try Outcome(&reader)
    due = try reader.optional { (reader) throws(RecordError) in
      Int64(bitPattern: try reader.number())
    }
  }
}

extension Settlement.Outcome {
  func write(to writer: inout RecordWriter) {
    switch self {
    case .acknowledged: writer.append(UInt8(0))
    case .released(let countsAttempt, let reason):
      writer.append(UInt8(countsAttempt ? 1 : 2))
      writer.append(reason)
    case .rejected(let reason):
      writer.append(UInt8(3))
      writer.append(reason)
    case .leaseEnded: writer.append(UInt8(4))
    }
  }

  init(_ reader: inout RecordReader) throws(RecordError) {
    switch try reader.byte() {
    case 0: self = .acknowledged
    case 1: self = .released(countsAttempt: true, reason: try reader.text())
    case 2: self = .released(countsAttempt: false, reason: try reader.text())
    case 3: self = .rejected(reason: try reader.text())
    case 4: self = .leaseEnded
    default: throw RecordError.unknownKind
    }
  }
}

extension MessageOrigin {
  /// How many bytes name a message.
  package static let byteCount = 28

  /// The bytes that name a message in a record.
  package var bytes: [UInt8] {
    var writer = RecordWriter()
    writer.append(self)
    return writer.bytes
  }

  /// Reads the name of a message.
  ///
  /// - Throws: ``RecordError`` for another number of bytes than ``byteCount``.
  package init(decoding bytes: [UInt8]) throws(RecordError) {
    var reader = RecordReader(bytes)
    self = try reader.origin()
    guard reader.isAtEnd else { throw RecordError.trailing }
  }
}

extension Identifier {
  /// The 16 bytes, big endian.
  package var bytes: [UInt8] {
    var writer = RecordWriter()
    writer.append(self)
    return writer.bytes
  }

  /// Reads 16 bytes.
  ///
  /// - Throws: ``RecordError`` for another number of bytes.
  package init(decoding bytes: [UInt8]) throws(RecordError) {
    var reader = RecordReader(bytes)
    self = try reader.identifier()
    guard reader.isAtEnd else { throw RecordError.trailing }
  }
}
