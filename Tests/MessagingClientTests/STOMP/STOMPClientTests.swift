import MessageCipher
import Synchronization
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingClient

/// The client over a server in memory, without sockets.
@Suite(.timeLimit(.minutes(10))) struct STOMPClientTests: STOMPClientChecks {
  private static let window = "datavault-deduplication-window:3600\n"
  private let server = MemoryServer()

  // MARK: - Sending

  @Test func `send() returns after the receipt`() async throws {
    let client = try server.client()
    async let sent: Void = client.send(
      Array("two books".utf8), to: "/queue/orders", contentType: "text/plain",
      headers: ["colour": "red:blue"])
    let connection = try await server.accept()
    let frame = try await connection.answer("SEND")
    try await sent
    #expect(frame.body == Array("two books".utf8))
    #expect(
      frame.headers.dropLast().map { "\($0.name)=\($0.value)" } == [
        "destination=/queue/orders", "content-type=text/plain", "content-length=9",
        "colour=red:blue",
      ])
  }

  @Test func `a lost publication is repeated with its id if the server knows ids`() async throws {
    let client = try server.client()
    async let sent: Void = client.send([1], to: "/topic/a")
    var ids: [String?] = []
    for isLast in [false, true] {
      let connection = try await server.accept("datavault-deduplication-window:3600\n")
      let frame = isLast ? try await connection.answer("SEND") : try await connection.frame("SEND")
      ids.append(frame[Deduplication.idHeader])
      if !isLast { connection.drop() }
    }
    try await sent
    #expect(ids[0]?.utf8.count == 32)
    #expect(ids[0] == ids[1])
  }

  @Test(arguments: [("", window), (window, "")])
  func `a lost publication is not repeated unless both connections know ids`(
    first: String, second: String
  ) async throws {
    let client = try server.client()
    async let code = code { try await client.send([1], to: "/topic/a") }
    let connection = try await server.accept(first)
    #expect((try await connection.frame("SEND")[Deduplication.idHeader] == nil) == first.isEmpty)
    connection.drop()
    if !first.isEmpty { _ = try await server.accept(second) }
    #expect(await code == .outcomeUnknown)
  }

  @Test func `a transaction without acknowledgements is repeated with its ids`() async throws {
    let client = try server.client()
    async let done: Void = client.transaction {
      try $0.send([1], to: "/topic/a")
      try $0.send([2], to: "/topic/a")
    }
    var ids: [String?] = []
    for _ in 0..<2 {
      let connection = try await server.accept(Self.window)
      _ = try await connection.frame("BEGIN")
      for _ in 0..<2 { ids.append(try await connection.frame("SEND")[Deduplication.idHeader]) }
      if ids.count == 2 { connection.drop() } else { try await connection.answer("COMMIT") }
    }
    try await done
    #expect(Set(ids).count == 2 && !ids.contains(nil))
    #expect(ids[..<2] == ids[2...])
  }

  @Test func `a refused publication was not sent, and another one goes on`() async throws {
    let client = try server.client()
    async let code = code { try await client.send([1], to: "/topic/a") }
    let connection = try await server.accept("datavault-deduplication-window:3600\n")
    let receipt = try await connection.frame("SEND")["receipt"] ?? ""
    connection.write(
      "ERROR\nmessage:access refused\\c no\ndatavault-status:403\nreceipt-id:\(receipt)\n\n\0")
    #expect(await code == .forbidden)
    #expect(await connection.ends())
    async let sent: Void = client.send([2], to: "/topic/b")
    try await server.accept().answer("SEND")
    try await sent
  }

  @Test func `no receipt in time leaves the outcome unknown`() async throws {
    let client = try server.client { $0.answerTime = .seconds(1) }
    async let code = code { try await client.send([1], to: "/topic/a") }
    _ = try await server.accept().frame("SEND")
    #expect(await code == .outcomeUnknown)
  }

  @Test(arguments: [
    ["receipt": "1"], ["content-length": "3"], ["datavault-attempt": "1"], ["": "a"], ["a": "\0"],
  ])
  func `a header that is the protocol's is refused before anything is sent`(
    _ headers: [String: String]
  ) async throws {
    let client = try server.client()
    #expect(
      await code { try await client.send([], to: "/topic/a", headers: headers) } == .invalidArgument
    )
    #expect(await code { try await client.send([], to: "") } == .invalidArgument)
  }

  // MARK: - Connecting

  @Test func `the client says who it is`() async throws {
    let client = try server.client {
      $0.login = .credentials(login: "anna", passcode: SharedSecret(secret("pass word")))
    }
    async let sent: Void = client.send([1], to: "/topic/a")
    let connection = try await server.next()
    let frame = try await connection.frame("CONNECT")
    #expect(frame["host"] == "shop")
    #expect(frame["login"] == "anna")
    #expect(frame["passcode"] == "pass word")
    connection.write("CONNECTED\nversion:1.2\n\n\0")
    try await connection.answer("SEND")
    try await sent
  }

  @Test func `a passcode does not go to another machine without TLS`() async throws {
    for (address, sends, expected) in [
      ("stomp://example.com:1", false, MessagingClientError.Code.unauthenticated),
      ("http://example.com", false, .unauthenticated),
      ("stomp://example.com:1", true, .cannotConnect),
      ("stomps://example.com:1", false, .cannotConnect), ("stomp://[::1]:1", false, .cannotConnect),
    ] {
      let client = try server.client {
        $0.server = address
        $0.sendsPasscodeUnprotected = sends
        $0.login = .credentials(login: "anna", passcode: SharedSecret(secret("p")))
      }
      server.fail(MessagingClientError(.cannotConnect, "away"))
      #expect(await code { try await client.send([1], to: "/topic/a") } == expected)
      if expected == .unauthenticated { _ = try? await server.opener.open() }
    }
  }

  @Test func `the login handler is asked again after a refusal, until it has no answer`()
    async throws
  {
    let counts = Mutex<[Int]>([])
    let client = try server.client {
      $0.login = .handler(
        ClosureLoginHandler { request in
          counts.withLock { $0.append(request.refusalCount) }
          guard request.refusalCount < 2 else { return nil }
          return LoginCredentials(user: secret("anna"), password: secret("\(request.refusalCount)"))
        })
    }
    async let code = code { try await client.send([1], to: "/topic/a") }
    for number in 0..<2 {
      let connection = try await server.next()
      #expect(try await connection.frame("CONNECT")["passcode"] == "\(number)")
      connection.write("ERROR\nmessage:access refused\\c no user\ndatavault-status:403\n\n\0")
    }
    #expect(await code == .unauthenticated)
    #expect(counts.withLock { $0 } == [0, 1, 2])
  }

  @Test(arguments: [true, false])
  func `a login that the server has refused is not sent again`(isFixed: Bool) async throws {
    let client = try server.client {
      $0.login =
        isFixed
        ? .credentials(login: "anna", passcode: SharedSecret(secret("p")))
        : .handler(
          ClosureLoginHandler { _ in LoginCredentials(user: secret("anna"), password: secret("p")) }
        )
    }
    async let code = code { try await client.send([1], to: "/topic/a") }
    let connection = try await server.next()
    _ = try await connection.frame("CONNECT")
    connection.write("ERROR\nmessage:access refused\\c no user\ndatavault-status:403\n\n\0")
    #expect(await code == .unauthenticated)
    // Nothing waits for the server, so another connection would wait for ever.
    #expect(await self.code { try await client.send([2], to: "/topic/a") } == .unauthenticated)
  }

  @Test func `a server that accepts and ends each connection gets no storm of connections`()
    async throws
  {
    let client = try server.client()
    async let code = code { try await client.send([1], to: "/topic/a") }
    let connection = try await server.next()
    _ = try await connection.frame("CONNECT")
    connection.write("CONNECTED\nversion:1.2\n\n\0ERROR\nmessage:no\n\n\0")
    #expect(await code == .unavailable)
  }

  @Test func `a subscription that is made again and not confirmed leaves the connection`()
    async throws
  {
    let client = try server.client { $0.answerTime = .seconds(1) }
    async let subscribed = client.subscribe(to: "/queue/a")
    let first = try await server.accept()
    try await first.answer("SUBSCRIBE")
    let subscription = try await subscribed
    first.drop()
    let second = try await server.accept()
    _ = try await second.frame("SUBSCRIBE")
    #expect(await second.ends())
    try await server.accept().answer("SUBSCRIBE")
    var events = subscription.makeAsyncIterator()
    #expect(isSubscribed(try await events.next()))
  }

  @Test func `what the login handler gave is used again by the next connection`() async throws {
    let count = Mutex(0)
    let log = RecordingLog()
    let client = try server.client {
      $0.logger = log.logger
      $0.login = .handler(
        ClosureLoginHandler { _ in
          count.withLock { $0 += 1 }
          return LoginCredentials(user: secret("anna"), password: secret("p"))
        })
    }
    for number in 1...2 {
      async let sent: Void = client.send([1], to: "/topic/a")
      let connection = try await server.accept()
      try await connection.answer("SEND")
      try await sent
      connection.drop()
      try await eventually("the client has seen it") {
        log.lines.filter { $0.message == "disconnected" }.count == number
      }
    }
    #expect(count.withLock { $0 } == 1)
  }

  @Test func `a client that cannot connect says so, and tries again when it is used again`()
    async throws
  {
    let client = try server.client()
    server.fail(MessagingClientError(.cannotConnect, "away"))
    #expect(await code { try await client.send([1], to: "/topic/a") } == .cannotConnect)
    async let sent: Void = client.send([1], to: "/topic/a")
    try await server.accept().answer("SEND")
    try await sent
  }

  @Test func `heart-beats are sent, and a silent server is left`() async throws {
    let client = try server.client {
      $0.sendsHeartBeatEvery = .milliseconds(40)
      $0.wantsHeartBeatEvery = .milliseconds(100)
    }
    async let subscription = client.subscribe(to: "/topic/a")
    let connection = try await server.accept("heart-beat:100,40\n")
    try await connection.answer("SUBSCRIBE")
    let events = try await subscription
    #expect(await connection.ends())
    #expect(connection.heartBeatCount > 0)
    var iterator = events.makeAsyncIterator()
    #expect(isSubscribed(try await iterator.next()))
    guard case .status(.disconnected)? = try await iterator.next() else {
      Issue.record("the subscription does not know that the connection is lost")
      return
    }
  }

  // MARK: - Transactions, encryption, the end

  @Test func `a transaction is sent whole, after its closure`() async throws {
    let client = try server.client()
    async let made = client.subscribe(to: "/queue/orders")
    let connection = try await server.accept()
    let frame = try await connection.answer("SUBSCRIBE")
    var iterator = try await made.makeAsyncIterator()
    _ = try await iterator.next()
    connection.message("1", "1-1", to: frame)
    let order = try message(try await iterator.next())
    async let value = client.transaction { transaction in
      try transaction.send([1], to: "/queue/invoices")
      try transaction.acknowledge(order)
      return 7
    }
    let begin = try await connection.answer("BEGIN")
    for command in ["SEND", "ACK", "COMMIT"] {
      let frame = try await connection.answer(command)
      #expect(frame["transaction"] == begin["transaction"])
    }
    #expect(try await value == 7)
    #expect(await code { try await order.acknowledge() } == .invalidArgument)
    // One that throws sends nothing.
    struct Mistake: Error {}
    await #expect(throws: Mistake.self) {
      try await client.transaction { transaction in
        try transaction.send([1], to: "/queue/invoices")
        throw Mistake()
      }
    }
    try await client.transaction { _ in }
    async let sent: Void = client.send([1], to: "/topic/a")
    try await connection.answer("SEND")
    try await sent
  }

  @Test func `a refusal within a transaction is the transaction's`() async throws {
    let client = try server.client()
    async let code = code {
      try await client.transaction { try $0.send([1], to: "/queue/a/b") }
    }
    let connection = try await server.accept()
    try await connection.answer("BEGIN")
    let receipt = try await connection.frame("SEND")["receipt"] ?? ""
    connection.write("ERROR\nmessage:send to the channel\nreceipt-id:\(receipt)\n\n\0")
    #expect(await code == .refused)
  }

  @Test(arguments: [#"{"a": 1}"#, "plain text", ""])
  func `a cipher encrypts bodies for their channel`(_ body: String) async throws {
    let cipher = try MessageCipher(key: SecretBytes(copying: [UInt8](repeating: 7, count: 32)))
    let client = try server.client { $0.cipher = cipher }
    async let made = client.subscribe(to: "/queue/orders")
    let connection = try await server.accept()
    let frame = try await connection.answer("SUBSCRIBE")
    var iterator = try await made.makeAsyncIterator()
    _ = try await iterator.next()
    async let sent: Void = client.send(Array(body.utf8), to: "/topic/orders")
    let sealed = try await connection.answer("SEND").body
    try await sent
    #expect((sealed.first == UInt8(ascii: "\"")) == body.hasPrefix("{"))
    if body.hasPrefix("{") {
      #expect(try cipher.decrypt(sealed, channel: "orders").bytes == Array(body.utf8))
    }
    #expect(try STOMPBody.open(sealed, on: "/queue/orders/billing", cipher) == Array(body.utf8))
    #expect(throws: (any Error).self) { try STOMPBody.open(sealed, on: "/queue/other", cipher) }
    connection.message("not encrypted", "1-1", to: frame)
    let forged = try message(try await iterator.next())
    #expect(throws: MessageCipherError.self) { try forged.content.get() }
    #expect(await code { try await client.send([1], to: "/exchange/a") } == .invalidArgument)
  }

  @Test func `close() disconnects with a receipt, and ends everything`() async throws {
    let client = try server.client()
    async let made = client.subscribe(to: "/topic/a")
    let connection = try await server.accept()
    try await connection.answer("SUBSCRIBE")
    let subscription = try await made
    async let closed: Void = client.close()
    try await connection.answer("DISCONNECT")
    await closed
    #expect(await connection.ends())
    var count = 0
    for try await _ in subscription { count += 1 }
    #expect(count == 1)
    #expect(await code { try await client.send([1], to: "/topic/a") } == .cancelled)
  }

  @Test func `a cancelled task waits neither for a connection nor for a receipt`() async throws {
    let client = try server.client()
    let first = Task { try await client.send([1], to: "/topic/a") }
    let connection = try await server.next()
    first.cancel()
    await #expect(throws: MessagingClientError.self) { try await first.value }
    connection.write("CONNECTED\nversion:1.2\n\n\0")
    let second = Task { try await client.send([1], to: "/topic/a") }
    _ = try await connection.frame("CONNECT")
    _ = try await connection.frame("SEND")
    second.cancel()
    #expect(await code { try await second.value } == .cancelled)
  }
}
