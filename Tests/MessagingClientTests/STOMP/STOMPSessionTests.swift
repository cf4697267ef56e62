import Testing

@testable import MessagingClient

@Suite struct STOMPSessionTests {
  private func session(connected: Bool = true) -> STOMPSession {
    var session = STOMPSession(sendsHeartBeatEvery: .seconds(10), wants: .seconds(5))
    if connected { _ = session.receive(Array("CONNECTED\nversion:1.2\n\n\0".utf8)) }
    return session
  }

  private func ending(_ events: [STOMPSession.Event]) -> STOMPEnding? {
    if case .ended(let ending)? = events.last { ending } else { nil }
  }

  @Test func `CONNECT offers version 1.2, the application and heart-beats`() {
    #expect(
      session(connected: false).connectFrame(host: "shop")
        == STOMPFrame(
          "CONNECT", [("accept-version", "1.2"), ("host", "shop"), ("heart-beat", "10000,5000")]))
  }

  static let answers: [(frame: String, server: STOMPServer?)] = [
    (
      "CONNECTED\nversion:1.2\nheart-beat:0,0\n\n\0",
      STOMPServer(heartBeat: STOMPHeartBeat(), deduplicationWindow: nil)
    ),
    (
      "CONNECTED\nversion:1.2\ndatavault-deduplication-window:3600\n\n\0",
      STOMPServer(heartBeat: STOMPHeartBeat(), deduplicationWindow: .seconds(3600))
    ),
    (
      "CONNECTED\nversion:1.2\ndatavault-deduplication-window:soon\n\n\0",
      STOMPServer(heartBeat: STOMPHeartBeat(), deduplicationWindow: nil)
    ),
    ("CONNECTED\nversion:1.1\n\n\0", nil),
    ("CONNECTED\n\n\0", nil),
    ("CONNECTED\nversion:1.2\nheart-beat:1\n\n\0", nil),
    ("CONNECTED\nversion:1.2\nheart-beat:a,b\n\n\0", nil),
    ("RECEIPT\nreceipt-id:1\n\n\0", nil),
    ("HTTP/1.1 400 Bad Request\r\n\r\n", nil),
  ]

  @Test(arguments: answers)
  func `the first frame is a CONNECTED of version 1.2`(frame: String, server: STOMPServer?) {
    var session = session(connected: false)
    let events = session.receive(Array(frame.utf8))
    if let server {
      #expect(events == [.connected(server)])
    } else {
      #expect(frame.hasPrefix("HTTP") || ending(events)?.error.code == .invalidAnswer)
      #expect(!events.contains { if case .connected = $0 { true } else { false } })
    }
  }

  @Test(
    arguments: [
      (nil, nil, nil), ("0,0", nil, nil), ("1000,1000", 10.0, 5.0), ("20000,30000", 30, 20),
      ("0,1", 10, nil), ("1,0", nil, 5),
    ] as [(String?, Double?, Double?)])
  func `heart-beats are the slower of both sides`(
    _ answer: String?, outgoing: Double?, incoming: Double?
  ) throws {
    let beat = try #require(STOMPHeartBeat(answer, sends: .seconds(10), wants: .seconds(5)))
    #expect(beat.outgoing == outgoing.map { .seconds($0) })
    #expect(beat.incoming == incoming.map { .seconds($0) })
  }

  @Test func `a heart-beat is sent halfway, and a server is lost after two`() throws {
    let beat = try #require(STOMPHeartBeat("10000,10000", sends: .seconds(10), wants: .seconds(10)))
    #expect(!beat.needsHeartBeat(afterSilence: .seconds(4.9)))
    #expect(beat.needsHeartBeat(afterSilence: .seconds(5)))
    #expect(!beat.isLost(afterSilence: .seconds(20)))
    #expect(beat.isLost(afterSilence: .seconds(20.1)))
    #expect(!STOMPHeartBeat().needsHeartBeat(afterSilence: .seconds(1000)))
    #expect(!STOMPHeartBeat().isLost(afterSilence: .seconds(1000)))
  }

  @Test func `a receipt ends its request, and others are ignored`() {
    var session = session()
    let frames = session.begin([STOMPFrame("BEGIN"), STOMPFrame("SEND"), STOMPFrame("COMMIT")], 7)
    #expect(frames.map { $0["receipt"] } == ["7.0", "7.1", "7"])
    let text = ["7.0", "7.1", "9", "x", "7", "7"]
      .map { "RECEIPT\nreceipt-id:\($0)\n\n\0" }.joined()
    #expect(session.receive(Array(text.utf8)) == [.receipt(7)])
  }

  @Test func `a message goes to its subscription`() {
    var session = session()
    let text = "MESSAGE\nsubscription:3\nmessage-id:1\n\nhello\0"
    let frame = STOMPFrame(
      "MESSAGE", [("subscription", "3"), ("message-id", "1")], body: Array("hello".utf8))
    #expect(session.receive(Array(text.utf8)) == [.message(frame, subscription: 3)])
  }

  @Test(arguments: [
    "MESSAGE\nmessage-id:1\n\n\0", "MESSAGE\nsubscription:1\n\n\0", "RECEIPT\n\n\0",
    "CONNECTED\nversion:1.2\n\n\0", "SEND\n\n\0", "MESSAGE\na\n\n\0",
  ])
  func `a frame that the protocol does not have here ends the session`(_ text: String) {
    var session = session()
    #expect(ending(session.receive(Array(text.utf8)))?.error.code == .invalidAnswer)
    #expect(session.receive(Array("RECEIPT\nreceipt-id:1\n\n\0".utf8)).isEmpty)
  }

  static let errors: [(headers: String, code: MessagingClientError.Code, request: UInt64?)] = [
    ("receipt-id:2\nmessage:access_refused", .forbidden, 2),
    ("receipt-id:2.0\nmessage:no such destination", .refused, 2),
    ("receipt-id:77\nmessage:no such destination", .refused, nil),
    ("message:the server is locked\ndatavault-status:5", .refused, 1),
    ("message:whatever\ndatavault-status:403\nreceipt-id:1", .forbidden, 1),
    ("message:whatever\ndatavault-status:503", .busy, nil),
    ("message:whatever\ndatavault-status:409\nreceipt-id:2", .unavailable, 2),
    ("message:whatever\ndatavault-status:505", .refused, 1),
    // Without a receipt-id, a refusal is that of the subscription whose receipt is next.
    ("message:access refused\\c no grant\ndatavault-status:403", .forbidden, 1),
    ("message:access_refused", .forbidden, 1),
    ("message:User anna is not authorized to read from\\c queue\\c//a", .forbidden, 1),
    // A text counts only without a status.
    ("message:access_refused\ndatavault-status:503", .busy, nil),
  ]

  @Test(arguments: errors)
  func `an ERROR frame says why, and which request was refused`(
    headers: String, code: MessagingClientError.Code, request: UInt64?
  ) {
    var session = session()
    _ = session.begin([STOMPFrame("SUBSCRIBE")], 1, isSubscription: true)
    _ = session.begin([STOMPFrame("SEND")], 2)
    let ending = ending(session.receive(Array("ERROR\n\(headers)\n\ntext\0".utf8)))
    #expect(ending?.error.code == code)
    #expect(ending?.request == request)
  }

  @Test func `an ERROR frame without a receipt-id never refuses a message`() {
    var session = session()
    _ = session.begin([STOMPFrame("SEND")], 1)
    _ = session.begin([STOMPFrame("SUBSCRIBE")], 2, isSubscription: true)
    let ending = ending(session.receive(Array("ERROR\nmessage:access_refused\n\n\0".utf8)))
    #expect(ending?.request == nil)
  }

  @Test(arguments: [
    "message:no \\n\u{1B}[2J\ndatavault-status:403\n\n",
    // RabbitMQ, then ActiveMQ.
    "message:Bad CONNECT\n\nAccess refused for user 'anna'\n",
    "message:User name [anna] or password is invalid.\n\njava.lang.SecurityException: \u{1B}[2J",
  ])
  func `a refused login is unauthenticated, and its text is escaped`(_ frame: String) {
    var session = session(connected: false)
    let text = "ERROR\n\(frame)\0"
    let error = ending(session.receive(Array(text.utf8)))?.error
    #expect(error?.code == .unauthenticated)
    #expect(error?.message.contains("\n") == false)
    #expect(error?.message.contains("\u{1B}") == false)
  }

  static let addresses: [(text: String, description: String?)] = [
    ("stomp://example.com:61613", "stomp://example.com:61613"),
    ("STOMPS://Example.com:443", "stomps://example.com"),
    ("stomp://[::1]:61613", "stomp://[::1]:61613"),
    ("https://example.com", "https://example.com"),
    ("ws://example.com:8080", "http://example.com:8080"),
    ("stomp://example.com", nil), ("stomp://anna:secret@example.com:1", nil),
    ("stomp://example.com:61613/path", nil), ("ftp://example.com", nil), ("example.com:1", nil),
    ("stomp://:61613", nil), ("", nil),
  ]

  @Test(arguments: addresses)
  func `an address is stomp, stomps, http or https`(text: String, description: String?) {
    let address = try? STOMPAddress(text)
    if description == "stomps://example.com" {
      #expect(address?.origin.port == 443)
    } else {
      #expect(address?.description == description)
    }
    if address == nil {
      let error = #expect(throws: MessagingClientError.self) { try STOMPAddress(text) }
      #expect(error?.code == .invalidArgument)
      #expect(error?.message.contains("secret") == false)
    }
  }

  @Test(
    arguments: [
      ("/topic/a", "a"), ("/queue/a", "a"), ("/queue/a/b", "a"), ("/topic/a/b", nil),
      ("/queue/", nil),
      ("/exchange/a", nil), ("a", nil), ("x/queue/a", nil), ("/queue/a/b/c", nil),
    ] as [(String, String?)])
  func `a destination names its channel`(_ destination: String, _ channel: String?) {
    #expect(STOMPBody.channel(of: destination) == channel)
  }

  @Test func `messages are settled once, alone or with what came before`() {
    var unsettled = STOMPUnsettled()
    for id in ["1", "2", "3", "4"] { unsettled.add(id) }
    let taken = [
      unsettled.take("2", .clientIndividual), unsettled.take("2", .clientIndividual),
      unsettled.take("3", .client), unsettled.take("1", .client), unsettled.take("4", .auto),
      unsettled.take("4", .client),
    ]
    #expect(taken == [true, false, true, false, false, true])
  }

  @Test func `a publication is repeated while the server knows its id`() throws {
    let (start, lost) = (ContinuousClock.now, MessagingClientError(.outcomeUnknown, "lost"))
    var known = STOMPRepetition(at: start)
    #expect(known.wait(Backoff()) == nil)
    let id = try known.id(.seconds(100), at: start)
    #expect(id != nil)
    try known.failed(lost)
    #expect(known.wait(Backoff()) != nil)
    let again = try known.id(.seconds(100), at: start + .seconds(49))
    #expect(again == id)
    try known.failed(MessagingClientError(.cannotConnect, "away"))
    // Too late, unknown to this server, and refused.
    #expect(throws: lost) { try known.id(.seconds(100), at: start + .seconds(51)) }
    #expect(throws: lost) { try known.id(nil, at: start) }
    #expect(throws: lost) { try known.failed(MessagingClientError(.forbidden, "no")) }

    var unknown = STOMPRepetition(at: start)
    let none = try unknown.id(nil, at: start)
    #expect(none == nil)
    #expect(throws: lost) { try unknown.failed(lost) }
    var refused = STOMPRepetition(at: start)
    _ = try refused.id(.seconds(100), at: start)
    let refusal = MessagingClientError(.forbidden, "no")
    #expect(throws: refusal) { try refused.failed(refusal) }
    var often = STOMPRepetition(at: start)
    _ = try often.id(.seconds(100), at: start)
    for _ in 0..<5 { try often.failed(lost) }
    #expect(throws: lost) { try often.failed(lost) }
  }
}
