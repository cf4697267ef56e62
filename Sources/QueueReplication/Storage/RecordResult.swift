internal import MessagingQueue
internal import Replication

/// The result of a record, for the callers that wait for it at its home.
enum RecordResult {
  /// The places of its messages; none for a record that publishes nothing.
  case places([Timetoken])
  case operation(QueueOperation.Result)
  case refused(EngineError)
  /// The rows were not as the changes expect.
  case conflict
  case settled(SettlementRule.Decision)
}

extension RecordResult {
  /// The places of what was published, or none of what was changed.
  ///
  /// - Throws: `busy` after a conflict; why the record was refused.
  func places() throws(EngineError) -> [Timetoken] {
    switch self {
    case .places(let places): return places
    case .refused(let error): throw error
    case .conflict:
      throw EngineError(.busy, "the rows were changed at the same time", hint: "call it again")
    case .operation, .settled: throw Self.otherKind
    }
  }

  /// The result of an operation.
  ///
  /// - Throws: why the record was refused.
  func operation() throws(EngineError) -> QueueOperation.Result {
    switch self {
    case .operation(let result): return result
    case .refused(let error): throw error
    case .places, .conflict, .settled: throw Self.otherKind
    }
  }

  private static let otherKind = EngineError(
    .damaged, "a record has the result of another kind of record",
    hint: "look whether the change was made, and report this fault")
}

/// The bytes in which one process of a home tells another one.
extension RecordResult {
  private enum Kind: UInt8 {
    case places = 1
    case operation, refused, conflict, settled
  }

  var bytes: [UInt8] {
    var writer = RecordWriter()
    switch self {
    case .places(let places):
      writer.append(Kind.places.rawValue)
      writer.append(places.map(\.rawValue))
    case .operation(let result):
      writer.append(Kind.operation.rawValue)
      writer.append(UInt64(result.count))
      writer.append(result.last)
      writer.append(result.passed)
    case .refused(let error):
      writer.append(Kind.refused.rawValue)
      writer.append(error.message)
      writer.appendOptional(error.hint) { $0.append($1) }
    case .conflict: writer.append(Kind.conflict.rawValue)
    case .settled: writer.append(Kind.settled.rawValue)
    }
    return writer.bytes
  }

  /// - Throws: ``RecordError``.
  init(decoding bytes: [UInt8]) throws {
    var reader = RecordReader(bytes)
    switch try Kind(rawValue: reader.byte()) {
    case .places: self = .places(try reader.numbers().map(Timetoken.init(unchecked:)))
    case .operation:
      self = .operation(
        QueueOperation.Result(
          count: try reader.positive(), last: try reader.place(), passed: try reader.numbers()))
    case .refused:
      let message = try reader.text()
      let hint = try reader.optional { reader throws(RecordError) in try reader.text() }
      self = .refused(EngineError(.invalidArgument, message, hint: hint))
    case .conflict: self = .conflict
    // Only the node of a home settles.
    case .settled, nil: throw RecordError.unknownKind
    }
    guard reader.isAtEnd else { throw RecordError.trailing }
  }
}
