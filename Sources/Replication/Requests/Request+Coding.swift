extension Request {
  private enum Kind: UInt8 {
    case receive = 1
    case settle, extend
  }

  /// The bytes that are sealed.
  ///
  /// - Throws: ``RequestError`` for too many elements, a text that is too long, and a lease that the owner has ended.
  package func encoded() throws(RequestError) -> [UInt8] {
    var writer = RecordWriter()
    writer.append(epoch)
    writer.append(beat)
    switch body {
    case .receive(let channel, let consumer, let mostMessages, let leaseMilliseconds):
      guard (1...Self.mostElements).contains(Int(mostMessages)) else { throw .tooManyElements }
      writer.append(Kind.receive.rawValue)
      try writer.append(checked: channel)
      try writer.append(checked: consumer)
      writer.append(mostMessages)
      writer.append(leaseMilliseconds)
    case .settle(let settlements):
      writer.append(Kind.settle.rawValue)
      try writer.append(settlements) { (writer, settlement) throws(RequestError) in
        try settlement.write(to: &writer)
      }
    case .extend(let leases, let leaseMilliseconds):
      writer.append(Kind.extend.rawValue)
      try writer.append(leases) { (writer, lease) throws(RequestError) in writer.append(lease) }
      writer.append(leaseMilliseconds)
    }
    return writer.bytes
  }

  /// Reads what was sealed.
  ///
  /// - Throws: ``RequestError/unreadable``.
  package init(decoding bytes: [UInt8]) throws(RequestError) {
    self = try RequestError.reading(bytes) { (reader) throws(RecordError) in
      try Request(&reader)
    }
  }

  private init(_ reader: inout RecordReader) throws(RecordError) {
    epoch = try reader.identifier()
    beat = try reader.number()
    guard let kind = Kind(rawValue: try reader.byte()) else { throw .unknownKind }
    switch kind {
    case .receive:
      body = .receive(
        channel: try reader.text(), consumer: try reader.text(),
        mostMessages: try reader.number(), leaseMilliseconds: try reader.number())
      guard case .receive(_, _, let mostMessages, _) = body,
        (1...Self.mostElements).contains(Int(mostMessages))
      else { throw .tooManyElements }
    case .settle:
      body = .settle(
        try reader.elements { (reader) throws(RecordError) in try LeaseSettlement(&reader) })
    case .extend:
      let leases = try reader.elements { (reader) throws(RecordError) in
        try reader.identifier() as LeaseID
      }
      body = .extend(leases, leaseMilliseconds: try reader.number())
    }
  }
}

extension LeaseSettlement {
  fileprivate func write(to writer: inout RecordWriter) throws(RequestError) {
    writer.append(lease)
    writer.append(delayMilliseconds)
    switch outcome {
    case .released(_, let reason), .rejected(let reason): try RecordWriter.check(reason)
    case .leaseEnded: throw .ownersOutcome
    case .acknowledged: break
    }
    outcome.write(to: &writer)
  }

  fileprivate init(_ reader: inout RecordReader) throws(RecordError) {
    lease = try reader.identifier()
    delayMilliseconds = try reader.number()
    outcome = try Settlement.Outcome(&reader)
    guard outcome != .leaseEnded else { throw .unknownKind }
  }
}

extension Reply {
  private enum Kind: UInt8 {
    case leased = 1
    case settled, extended, notOwner, refused
  }

  /// The bytes that are sealed.
  ///
  /// - Throws: ``RequestError`` for too many elements, and a text that is too long.
  package func encoded() throws(RequestError) -> [UInt8] {
    var writer = RecordWriter()
    switch self {
    case .leased(let messages):
      writer.append(Kind.leased.rawValue)
      try writer.append(messages) { (writer, message) throws(RequestError) in
        message.write(to: &writer)
      }
    case .settled(let results):
      writer.append(Kind.settled.rawValue)
      try writer.append(results) { (writer, result) throws(RequestError) in
        writer.append(result.rawValue)
      }
    case .extended(let results):
      writer.append(Kind.extended.rawValue)
      try writer.append(results) { (writer, result) throws(RequestError) in
        writer.append(UInt8(result ? 1 : 0))
      }
    case .notOwner(let owner):
      writer.append(Kind.notOwner.rawValue)
      writer.appendOptional(owner) { $0.append($1) }
    case .refused(let reason):
      writer.append(Kind.refused.rawValue)
      try writer.append(checked: reason)
    }
    return writer.bytes
  }

  /// Reads what was sealed.
  ///
  /// - Throws: ``RequestError/unreadable``.
  package init(decoding bytes: [UInt8]) throws(RequestError) {
    self = try RequestError.reading(bytes) { (reader) throws(RecordError) in try Reply(&reader) }
  }

  private init(_ reader: inout RecordReader) throws(RecordError) {
    guard let kind = Kind(rawValue: try reader.byte()) else { throw .unknownKind }
    switch kind {
    case .leased:
      self = .leased(
        try reader.elements { (reader) throws(RecordError) in try LeasedMessage(&reader) })
    case .settled:
      self = .settled(
        try reader.elements { (reader) throws(RecordError) in
          guard let result = SettlementResult(rawValue: try reader.byte()) else {
            throw .unknownKind
          }
          return result
        })
    case .extended:
      self = .extended(
        try reader.elements { (reader) throws(RecordError) in try reader.flag() })
    case .notOwner:
      self = .notOwner(
        try reader.optional { (reader) throws(RecordError) in try reader.identifier() })
    case .refused: self = .refused(reason: try reader.text())
    }
  }
}

extension LeasedMessage {
  fileprivate func write(to writer: inout RecordWriter) {
    writer.append(message)
    writer.append(UInt64(bitPattern: timetoken))
    writer.append(lease)
    writer.append(attempt)
  }

  fileprivate init(_ reader: inout RecordReader) throws(RecordError) {
    message = try reader.origin()
    timetoken = Int64(bitPattern: try reader.number())
    lease = try reader.identifier()
    attempt = try reader.number()
  }
}

extension RequestError {
  /// Reads all bytes as one value.
  fileprivate static func reading<Value>(
    _ bytes: [UInt8], _ read: (inout RecordReader) throws(RecordError) -> Value
  ) throws(RequestError) -> Value {
    var reader = RecordReader(bytes)
    guard let value = try? read(&reader), reader.isAtEnd else { throw .unreadable }
    return value
  }
}

extension RecordWriter {
  /// Refuses a text whose length two bytes cannot have.
  fileprivate static func check(_ text: String) throws(RequestError) {
    guard text.utf8.count <= UInt16.max else { throw .textTooLong }
  }

  fileprivate mutating func append(checked text: String) throws(RequestError) {
    try Self.check(text)
    append(text)
  }

  /// Writes the count in four bytes, then each element.
  fileprivate mutating func append<Element>(
    _ elements: [Element],
    _ write: (inout RecordWriter, Element) throws(RequestError) -> Void
  ) throws(RequestError) {
    guard elements.count <= Request.mostElements else { throw .tooManyElements }
    append(UInt32(elements.count))
    for element in elements { try write(&self, element) }
  }
}

extension RecordReader {
  fileprivate mutating func elements<Element>(
    _ read: (inout RecordReader) throws(RecordError) -> Element
  ) throws(RecordError) -> [Element] {
    let count = Int(try number(UInt32.self))
    guard count <= Request.mostElements else { throw .tooManyElements }
    var elements: [Element] = []
    for _ in 0..<count { elements.append(try read(&self)) }
    return elements
  }
}

extension RecordError {
  fileprivate static let tooManyElements = RecordError(
    reason: "a request between members has more elements than allowed")
}
