import Testing

@testable import MessagingClient

/// What a subscription of the client gives and settles, over a server in memory.
@Suite(.timeLimit(.minutes(10))) struct STOMPReceivingTests: STOMPClientChecks {
  private let server = MemoryServer()

  @Test func `messages of a queue come in order, and each is settled with a receipt`() async throws
  {
    let client = try server.client()
    async let made = client.subscribe(to: "/queue/orders", consumer: "billing", prefetch: 3)
    let connection = try await server.accept()
    let frame = try await connection.answer("SUBSCRIBE")
    #expect(frame["destination"] == "/queue/orders/billing")
    #expect(frame["ack"] == "client-individual")
    #expect(frame["prefetch-count"] == "3")
    var iterator = try await made.makeAsyncIterator()
    #expect(isSubscribed(try await iterator.next()))
    for number in 1...3 {
      connection.message(
        "\(number)", "1-\(number)", to: frame,
        number == 2 ? "redelivered:true\ndatavault-attempt:2\ncontent-type:text/plain\n" : "")
    }
    let first = try message(try await iterator.next())
    let second = try message(try await iterator.next())
    let third = try message(try await iterator.next())
    #expect(try second.content.get() == Array("2".utf8))
    #expect(second.isRedelivered && second.attempt == 2 && second.contentType == "text/plain")
    #expect(!first.isRedelivered && first.attempt == nil && first.messageID == "1-1")

    async let acknowledged: Void = first.acknowledge()
    #expect(try await connection.answer("ACK")["id"] == "1-1")
    try await acknowledged
    async let released: Void = second.release()
    let release = try await connection.answer("NACK")
    #expect(release["id"] == "1-2" && release["requeue"] == nil)
    try await released
    async let rejected: Void = third.reject()
    let rejection = try await connection.answer("NACK")
    #expect(rejection["id"] == "1-3" && rejection["requeue"] == "false")
    try await rejected
    #expect(await code { try await first.acknowledge() } == .invalidArgument)
  }

  @Test func `an acknowledgement that is lost with its connection throws`() async throws {
    let client = try server.client()
    async let made = client.subscribe(to: "/queue/orders")
    let connection = try await server.accept()
    let frame = try await connection.answer("SUBSCRIBE")
    var iterator = try await made.makeAsyncIterator()
    _ = try await iterator.next()
    for number in 1...3 { connection.message("\(number)", "1-\(number)", to: frame) }
    let first = try message(try await iterator.next())
    let second = try message(try await iterator.next())
    async let code = code { try await first.acknowledge() }
    _ = try await connection.frame("ACK")
    connection.drop()
    #expect(await code == .outcomeUnknown)
    let next = try await server.accept()
    let again = try await next.answer("SUBSCRIBE")
    #expect(again["id"] == frame["id"])
    #expect(await self.code { try await second.acknowledge() } == .unavailable)
    // The third message waited for the application: it comes once, by the new connection.
    next.message("3", "9-1", to: again)
    guard case .status(.disconnected)? = try await iterator.next() else {
      Issue.record("the subscription does not know that the connection is lost")
      return
    }
    #expect(isSubscribed(try await iterator.next()))
    let third = try message(try await iterator.next())
    #expect(third.messageID == "9-1")
    async let acknowledged: Void = third.acknowledge()
    #expect(try await next.answer("ACK")["id"] == "9-1")
    try await acknowledged
  }

  @Test func `a locked server is shown as waiting, and a topic goes on after it`() async throws {
    let client = try server.client()
    async let made = client.subscribe(to: "/topic/a")
    let connection = try await server.accept()
    let frame = try await connection.answer("SUBSCRIBE")
    #expect(frame["ack"] == "auto" && frame["prefetch-count"] == nil)
    var iterator = try await made.makeAsyncIterator()
    #expect(isSubscribed(try await iterator.next()))
    connection.message("1", "1", to: frame)
    connection.write("ERROR\nmessage:the server is locked\ndatavault-status:503\n\n\0")
    for _ in 0..<2 {
      let locked = try await server.next()
      _ = try await locked.frame("CONNECT")
      locked.write("ERROR\nmessage:the server is locked\ndatavault-status:503\n\n\0")
    }
    let next = try await server.accept()
    next.message("2", "2", to: try await next.answer("SUBSCRIBE"))
    #expect(try text(await iterator.next()) == "1")
    guard case .status(.waiting)? = try await iterator.next() else {
      Issue.record("the subscription does not know that the server is locked")
      return
    }
    #expect(isSubscribed(try await iterator.next()))
    #expect(try text(await iterator.next()) == "2")
  }

  @Test func `a refused subscription throws, and one that is refused later ends`() async throws {
    let client = try server.client()
    async let kept = client.subscribe(to: "/topic/kept")
    let first = try await server.accept()
    try await first.answer("SUBSCRIBE")
    var iterator = try await kept.makeAsyncIterator()
    #expect(isSubscribed(try await iterator.next()))
    async let code = code { _ = try await client.subscribe(to: "/topic/other") }
    _ = try await first.frame("SUBSCRIBE")
    first.write("ERROR\nmessage:access refused\\c no grant\ndatavault-status:403\n\n\0")
    #expect(await code == .forbidden)
    let second = try await server.accept()
    #expect(try await second.frame("SUBSCRIBE")["destination"] == "/topic/kept")
    second.write("ERROR\nmessage:access refused\\c no grant\ndatavault-status:403\n\n\0")
    _ = try await iterator.next()
    #expect(await self.code { _ = try await iterator.next() } == .forbidden)
  }

  @Test func `a subscription that nothing refers to is unsubscribed`() async throws {
    let client = try server.client()
    async let made: Void = { _ = try await client.subscribe(to: "/topic/a") }()
    let connection = try await server.accept()
    let frame = try await connection.answer("SUBSCRIBE")
    try await made
    #expect(try await connection.answer("UNSUBSCRIBE")["id"] == frame["id"])
    async let closed: Void = client.close()
    try await connection.answer("DISCONNECT")
    await closed
  }

  @Test(arguments: ["/topic/a", "/queue/a"])
  func `a slow application holds the connection back, and loses nothing`(destination: String)
    async throws
  {
    let client = try server.client { $0.waitingByteCount = 3_000 }
    async let made = client.subscribe(to: destination)
    let connection = try await server.accept()
    let frame = try await connection.answer("SUBSCRIBE")
    let subscription = try await made
    let body = String(repeating: "x", count: 700)
    for number in 0..<20 { connection.message("\(number) \(body)", "\(number)", to: frame) }
    // Nothing shows that the client reads no further than the limit; it takes the rest when the application does.
    try await Task.sleep(for: .milliseconds(100))
    #expect(connection.readCount < 10)
    // The receipt is behind all messages: a request reads on.
    async let sent: Void = client.send([1], to: "/topic/b")
    try await connection.answer("SEND")
    try await sent
    var iterator = subscription.makeAsyncIterator()
    #expect(isSubscribed(try await iterator.next()))
    for number in 0..<20 {
      #expect(try text(await iterator.next())?.hasPrefix("\(number) ") == true)
    }
    // And it goes on when the application is no longer behind.
    for number in 20..<40 { connection.message("\(number) \(body)", "\(number)", to: frame) }
    for number in 20..<40 {
      #expect(try text(await iterator.next())?.hasPrefix("\(number) ") == true)
    }
  }

  @Test(arguments: [("/topic/a", nil), ("/topic/a", 30), ("/queue/a", nil), ("/queue/a", 3)])
  func `a subscription that is much too slow ends with an error`(
    destination: String, prefetch: Int?
  ) async throws {
    let client = try server.client { $0.waitingByteCount = 100 }
    async let made = client.subscribe(to: destination, prefetch: prefetch)
    let connection = try await server.accept()
    let frame = try await connection.answer("SUBSCRIBE")
    let subscription = try await made
    async let sent: Void = client.send([1], to: "/topic/b")
    let send = try await connection.frame("SEND")
    for number in 0..<30 {
      connection.message(String(repeating: "x", count: 100), "\(number)", to: frame)
    }
    try await connection.answer("UNSUBSCRIBE")
    connection.write("RECEIPT\nreceipt-id:\(send["receipt"] ?? "")\n\n\0")
    try await sent
    #expect(await code { for try await _ in subscription {} } == .busy)
  }

  @Test func `as many messages as the prefetch wait whatever their size`() async throws {
    let client = try server.client { $0.waitingByteCount = 100 }
    async let made = client.subscribe(to: "/queue/a", prefetch: 30)
    let connection = try await server.accept()
    let frame = try await connection.answer("SUBSCRIBE")
    let subscription = try await made
    for number in 0..<30 {
      connection.message(String(repeating: "x", count: 100), "\(number)", to: frame)
    }
    // The receipt is behind them.
    async let sent: Void = client.send([1], to: "/topic/b")
    try await connection.answer("SEND")
    try await sent
    var iterator = subscription.makeAsyncIterator()
    #expect(isSubscribed(try await iterator.next()))
    for _ in 0..<30 { _ = try message(try await iterator.next()) }
  }

  @Test func `a message that cannot be settled leaves the others of its transaction unsettled`()
    async throws
  {
    let client = try server.client()
    async let made = client.subscribe(to: "/queue/orders", prefetch: 2)
    let connection = try await server.accept()
    let frame = try await connection.answer("SUBSCRIBE")
    var iterator = try await made.makeAsyncIterator()
    _ = try await iterator.next()
    for number in 1...2 { connection.message("\(number)", "1-\(number)", to: frame) }
    let first = try message(try await iterator.next())
    let second = try message(try await iterator.next())
    async let settled: Void = second.acknowledge()
    try await connection.answer("ACK")
    try await settled
    let refusal = await code {
      try await client.transaction { transaction in
        try transaction.acknowledge(first)
        try transaction.acknowledge(second)
      }
    }
    #expect(refusal == .invalidArgument)
    async let acknowledged: Void = first.acknowledge()
    #expect(try await connection.answer("ACK")["id"] == "1-1")
    try await acknowledged
  }
}
