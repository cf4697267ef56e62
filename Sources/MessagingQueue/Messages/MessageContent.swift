internal import Foundation

/// What a record of a replicated log has of a message beside its channel, deduplication id and ordering key.
///
/// Times are absolute: a delay and a time to live count from the author's wall clock when it publishes. The bytes are
/// specified in `docs/reference/replication-format.md`.
extension Message {
  /// - Parameter now: the author's wall clock, in units of 100 ns since 1970.
  package func content(at now: Int64) -> [UInt8] {
    let headers = HeaderCoding.encode(headers) ?? []
    var bytes: [UInt8] = []
    bytes.reserveCapacity(payload.count + headers.count + 23)
    bytes.append(UInt8(truncatingIfNeeded: priority.rawValue))
    bytes.append(time: due(at: now))
    bytes.append(time: expirationTicks ?? timeToLive.map { now + WallTime.ticks(of: $0) })
    for shift in stride(from: 24, through: 0, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: headers.count >> shift))
    }
    bytes += headers
    bytes += payload
    return bytes
  }

  /// Reads a message of a record.
  ///
  /// - Throws: `damaged` if an engine would not have written it.
  package init(
    channel: String, deduplicationID: String?, orderingKey: String?, content: [UInt8]
  ) throws {
    var rest = content[...]
    guard let priority = rest.popFirst(), priority <= 9, let due = rest.takeTime(),
      let expires = rest.takeTime(), rest.count >= 4
    else { throw Self.unreadable }
    let headerByteCount = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
    rest = rest.dropFirst(4)
    guard rest.count >= headerByteCount,
      [deduplicationID, orderingKey].allSatisfy({ $0.map(Name.fault) ?? nil == nil }),
      orderingKey == nil || priority == Priority.normal.rawValue
    else { throw Self.unreadable }
    self.init(
      channel: try Channel(channel), payload: Array(rest.dropFirst(headerByteCount)),
      headers: try HeaderCoding.decode(
        headerByteCount == 0 ? nil : Data(rest.prefix(headerByteCount))),
      priority: Priority(stored: Int(priority)),
      availability: due.map { .at(ticks: $0) } ?? .immediately, orderingKey: orderingKey,
      deduplicationID: deduplicationID)
    expirationTicks = expires
  }

  private func due(at now: Int64) -> Int64? {
    switch availability.moment {
    case .after(.zero): nil
    case .after(let delay): now + WallTime.ticks(of: delay)
    case .at(let ticks): ticks
    }
  }

  private static var unreadable: EngineError {
    EngineError(
      .damaged, "a message of the log cannot be read",
      hint: "another version of datavault possibly wrote it; bring all nodes up to date")
  }
}

extension [UInt8] {
  fileprivate mutating func append(time: Int64?) {
    append(time == nil ? 0 : 1)
    guard let time else { return }
    for shift in stride(from: Int64(56), through: 0, by: -8) {
      append(UInt8(truncatingIfNeeded: time >> shift))
    }
  }
}

extension ArraySlice<UInt8> {
  /// - Returns: nil if the bytes end, or a value is out of range.
  fileprivate mutating func takeTime() -> Int64?? {
    guard let flag = popFirst(), flag <= 1 else { return nil }
    guard flag == 1 else { return .some(nil) }
    guard count >= 8 else { return nil }
    defer { self = dropFirst(8) }
    let time = prefix(8).reduce(Int64(0)) { $0 << 8 | Int64($1) }
    guard time >= 0, time <= Timetoken.greatest.rawValue else { return nil }
    return .some(time)
  }
}
