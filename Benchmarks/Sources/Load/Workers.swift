import Glibc

/// Workers of one queue, each with a connection of its own, that acknowledge a message when it comes.
struct Workers {
  private let connections: [Connection]
  private let subscription: [UInt8]
  private let poller = Poller()

  /// Begins to connect.
  ///
  /// - Parameter prefetchCount: how many messages a worker gets before it has acknowledged the first of them.
  init(_ service: Service, port: UInt16, count: Int, prefetchCount: Int) throws {
    connections = try (0..<count).map { _ in try Connection(service, port: port) }
    subscription = Service.stompSubscription(prefetchCount: prefetchCount)
    for (number, connection) in connections.enumerated() { poller.add(connection, as: number) }
  }

  /// Acknowledges so many messages, which the queue must have.
  ///
  /// - Returns: the receipts, and the time from the subscriptions, after all workers have connected, to the last receipt.
  func acknowledge(_ messageCount: Int) throws -> (count: Int, seconds: Double) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 8)
    defer { buffer.deallocate() }
    var connectedCount = 0
    while connectedCount < connections.count {
      for number in poller.wait(milliseconds: 1000) {
        switch try connections[number].event(buffer) {
        case .connected: connectedCount += 1
        case .answered, .lost: throw LoadError("a connection was lost")
        case nil: break
        }
      }
    }
    let start = secondsNow()
    for connection in connections { try send(subscription, connection) }
    var receiptCount = 0
    while receiptCount < messageCount {
      for number in poller.wait(milliseconds: 1000) {
        // Many messages and receipts come together.
        while let event = try connections[number].event(buffer) {
          guard case .answered(let frame) = event else { throw LoadError("a connection was lost") }
          guard frame.isSuccess else { throw LoadError("refused: \(frame.description)") }
          if let acknowledgement = Service.stompAcknowledgement(of: frame) {
            try send(acknowledgement, connections[number])
          } else {
            receiptCount += 1
          }
        }
      }
    }
    return (receiptCount, secondsNow() - start)
  }

  private func send(_ frame: [UInt8], _ connection: Connection) throws {
    guard connection.send(frame) else { throw LoadError("a connection was lost") }
  }
}
