/// Publishers, each with a connection of its own, that wait for one acknowledgement before they publish again.
struct Publishers {
  private let connections: [Connection]
  private let requests: [[UInt8]]
  private let poller = Poller()

  init(_ service: Service, port: UInt16, count: Int) throws {
    connections = try (0..<count).map { _ in try Connection(service, port: port) }
    requests = (0..<count).map { service.publish("load", by: $0) }
    for (number, connection) in connections.enumerated() { poller.add(connection, as: number) }
  }

  /// Publishes for some time, after each connection has had one acknowledgement, which does not count.
  ///
  /// - Returns: the acknowledged messages, and the time from the first request to the last acknowledgement.
  func publish(for seconds: Double) throws -> (count: Int, seconds: Double) {
    try run { false }
    for (number, _) in connections.enumerated() { try publish(number) }
    let start = secondsNow()
    let count = try run { secondsNow() - start < seconds }
    return (count, secondsNow() - start)
  }

  /// Publishes so many messages, and one less than there are connections at most besides.
  func fill(_ messageCount: Int) throws -> (count: Int, seconds: Double) {
    let start = secondsNow()
    var startedCount = connections.count
    let count = try run {
      startedCount += 1
      return startedCount <= messageCount
    }
    return (count, secondsNow() - start)
  }

  /// Publishes again after each acknowledgement while `continues` says so, then waits for those that are missing.
  @discardableResult
  private func run(_ continues: () -> Bool) throws -> Int {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 8)
    defer { buffer.deallocate() }
    var waitingCount = connections.count
    var count = 0
    while waitingCount > 0 {
      for number in poller.wait(milliseconds: 1000) {
        switch try connections[number].event(buffer) {
        case .connected: try publish(number)
        case .answered(let answer):
          guard answer.isSuccess else { throw LoadError("refused: \(answer.description)") }
          count += 1
          if continues() { try publish(number) } else { waitingCount -= 1 }
        case .lost: throw LoadError("a connection was lost")
        case nil: break
        }
      }
    }
    return count
  }

  private func publish(_ number: Int) throws {
    guard connections[number].send(requests[number]) else {
      throw LoadError("a connection was lost")
    }
  }
}
