import AccessControl
import MessagingQueue
import Testing

@testable import MessagingServer

/// A session that is told what a client sends, and what the shell would tell it.
private struct Client {
  var session: STOMPSession
  var now: UInt64 = 1_000_000_000
  /// What the session wants, as text.
  private(set) var notes: [String] = []
  private(set) var frames: [STOMPFrame] = []
  private(set) var operations: [[STOMPOperation]] = []
  /// The channels of publications about which the session asks before their transaction ends.
  private(set) var authorized: [String] = []

  init(_ version: String? = "1.2", _ limits: STOMPLimits = STOMPLimits(), heartBeat: String = "0,0")
  {
    session = STOMPSession(limits, atNanoseconds: now)
    let accept = version.map { "accept-version:\($0)\n" } ?? ""
    send("CONNECT\n\(accept)host:shop\nheart-beat:\(heartBeat)\n\n")
  }

  mutating func send(_ text: String) {
    take(session.receive(Array("\(text)\0".utf8), atNanoseconds: now))
  }

  mutating func pass(_ time: Duration) {
    now += time.nanoseconds
    take(session.timePassed(atNanoseconds: now))
  }

  mutating func deliver(_ count: Int, of number: Int = 1, attempt: Int = 1) throws {
    let channel = try Channel("shop/c")
    let deliveries = try (1...count).map { index in
      Delivery(
        of: Message(channel: channel, payload: [UInt8(index)]),
        at: try #require(Timetoken("170000000000\(100 + index)00")), attempt: attempt,
        maximumAttempts: nil)
    }
    take(session.deliver(deliveries, of: number))
  }

  mutating func take(_ actions: [STOMPSession.Action]) {
    for action in actions {
      switch action {
      case .authenticate: take(session.connected("name", atNanoseconds: now))
      case .send(let frame):
        frames.append(frame)
        notes.append(frame.command)
      case .sendLeased(let frame, let number, let subscription):
        frames.append(frame)
        notes.append("MESSAGE \(number)")
        take(session.didSend(number, of: subscription))
      case .subscribe(let subscription, _): notes.append("subscribe \(subscription.number)")
      case .unsubscribe(let subscription, let tokens):
        notes.append("unsubscribe \(subscription.number) \(tokens.count)")
      case .authorize(let publication, _): authorized.append(publication.channel.text)
      case .perform(let operations, let receipt):
        self.operations.append(operations)
        notes.append("perform \(operations.count) \(receipt ?? "-")")
      case .giveBack(let tokens): notes.append("give back \(tokens.count)")
      case .credit(let count, let subscription): notes.append("credit \(count) of \(subscription)")
      case .receipt(let id): notes.append("receipt \(id)")
      case .close: notes.append("close")
      case .fail(let ending): notes.append("fail: \(ending.message)")
      case .end(let ending): notes.append("end: \(ending.message)")
      }
    }
  }

  /// What has happened since the last call.
  mutating func happened() -> [String] {
    defer { notes = [] }
    return notes
  }

  /// The numbers of the deliveries that the last operation settles.
  var settled: [UInt64] {
    guard case .settle(let settlement) = operations.last?.first else { return [] }
    return settlement.deliveries.map(\.number)
  }
}

@Suite struct STOMPSessionTests {
  @Test(arguments: [(nil, "1.0"), ("1.0,1.1", "1.1"), ("1.2", "1.2")] as [(String?, String)])
  func `a client gets its version`(accepted: String?, version: String) {
    let client = Client(accepted)
    #expect(client.frames[0].command == "CONNECTED")
    #expect(client.frames[0]["version"] == version)
  }

  @Test func `a version that the server does not have is refused with those that it has`() {
    var client = Client("1.9")
    #expect(client.happened() == ["fail: this server speaks versions 1.0, 1.1 and 1.2"])
  }

  @Test func `frames that come with CONNECT are read as its version`() {
    var session = STOMPSession(atNanoseconds: 0)
    let text = "CONNECT\naccept-version:1.2\nhost:shop\n\n\0SEND\ndestination:/topic/a\\cb\n\nx\0"
    #expect(session.receive(Array(text.utf8), atNanoseconds: 1).count == 1)
    let actions = session.connected("name", atNanoseconds: 2)
    guard actions.count == 2, case .perform(let operations, _) = actions[1],
      case .publish(let publication) = operations.first
    else { return #expect(Bool(false), "\(actions)") }
    #expect(publication.channel.text == "a:b")
  }

  @Test(arguments: [
    "SEND\ndestination:/topic/c\n\n", "\u{0}", "HELLO\n\n", "CONNECTED\n\n", "DISCONNECT\n\n",
  ])
  func `nothing but CONNECT comes first`(text: String) {
    var session = STOMPSession(atNanoseconds: 0)
    let actions = session.receive(Array("\(text)\0".utf8), atNanoseconds: 1)
    guard case .fail = actions.first ?? .fail(.failed) else {
      return #expect(Bool(false), "\(actions)")
    }
  }

  @Test(arguments: [
    "CONNECT\n\n", "SEND\n\nx", "SEND\ndestination:c\n\nx", "SEND\ndestination:/topic/\n\nx",
    "SEND\ndestination:/queue/c/w\n\nx", "SEND\ndestination:/topic/a/b\n\nx",
    "SEND\ndestination:/topic/a.*\n\nx", "SEND\ndestination:/topic/a-pnpres\n\nx",
    "SEND\ndestination:/topic/c\ntransaction:t\n\nx", "SUBSCRIBE\ndestination:/topic/c\n\n",
    "SUBSCRIBE\nid:1\ndestination:/topic/c\nack:client\n\n",
    "SUBSCRIBE\nid:1\ndestination:/queue/c\nack:other\n\n",
    "SUBSCRIBE\nid:1\ndestination:/queue/c\nselector:a = 1\n\n",
    "SUBSCRIBE\nid:1\ndestination:/queue/c\nprefetch-count:0\n\n",
    "SUBSCRIBE\nid:1\ndestination:/queue/c/a/b\n\n", "SUBSCRIBE\nid:1\ndestination:/queue/c/\n\n",
    "UNSUBSCRIBE\nid:1\n\n", "ACK\nid:1-1\n\n", "NACK\nid:x\n\n", "ACK\n\n", "BEGIN\n\n",
    "COMMIT\ntransaction:t\n\n", "ABORT\ntransaction:t\n\n", "MESSAGE\n\n", "ACK\nid:1-1\n\nbody",
  ])
  func `a frame that cannot be handled ends the connection, and nothing behind it counts`(
    text: String
  ) {
    var client = Client()
    _ = client.happened()
    client.send(text)
    client.send("SEND\ndestination:/topic/c\n\nx")
    let notes = client.happened()
    #expect(notes.count == 1)
    #expect(notes.first?.hasPrefix("fail: ") == true)
  }

  @Test func `an error names the receipt of its frame`() {
    var session = STOMPSession(atNanoseconds: 0)
    _ = session.receive(Array("CONNECT\naccept-version:1.2\n\n\0".utf8), atNanoseconds: 0)
    _ = session.connected("name", atNanoseconds: 0)
    let actions = session.receive(Array("ACK\nid:1-1\nreceipt:r\n\n\0".utf8), atNanoseconds: 0)
    guard case .fail(let ending) = actions.first else { return #expect(Bool(false)) }
    #expect(ending.frame["receipt-id"] == "r")
    #expect(ending.frame.command == "ERROR")
  }

  @Test(arguments: [
    "a\\nb", "a\\rb", "a\u{1}", "\u{7F}", String(repeating: "a", count: 256),
  ])
  func `a name of a header that no message can have is refused before anything is done`(
    name: String
  ) {
    var client = Client()
    _ = client.happened()
    client.send("SEND\ndestination:/topic/c\n\(name):x\n\n")
    #expect(
      client.happened() == [
        "fail: the name of a header has a control character, or more than 255 bytes"
      ])
    #expect(client.operations.isEmpty)
  }

  @Test func `a message keeps its client's headers, and none of the server's`() throws {
    var client = Client()
    client.send(
      "SEND\ndestination:/queue/c\ncontent-type:text/x\na:b\na:c\ndatavault-publisher:me\nmessage-id:7\nreceipt:r\n\nbody"
    )
    guard case .publish(let publication) = client.operations.last?.first else {
      return #expect(Bool(false))
    }
    #expect(
      publication.headers == ["a": "b", "datavault-content-type": "text/x"])
    #expect(publication.body == Array("body".utf8))
    #expect(client.happened().last == "perform 1 r")
  }

  @Test func `ack client settles what was delivered before, client-individual one message`() throws
  {
    var client = Client()
    client.send("SUBSCRIBE\nid:a\ndestination:/queue/c\nack:client\n\n")
    client.send("SUBSCRIBE\nid:b\ndestination:/queue/c/w\nack:client-individual\n\n")
    try client.deliver(3, of: 1)
    try client.deliver(3, of: 2)
    #expect(client.frames.last?["ack"] == "2-6")
    #expect(client.frames.last?["subscription"] == "b")
    client.send("ACK\nid:1-2\n\n")
    #expect(client.settled == [1, 2])
    client.send("NACK\nid:2-5\n\n")
    #expect(client.settled == [5])
    #expect(client.session.tokens.count == 3)
    _ = client.happened()
    client.send("ACK\nid:1-2\n\n")
    #expect(
      client.happened() == ["fail: no message with this id waits for its acknowledgement"])
  }

  @Test(arguments: ["1.0", "1.1"]) func `versions before 1.2 acknowledge by message-id`(
    version: String
  ) throws {
    var client = Client(version)
    client.send("SUBSCRIBE\nid:a\ndestination:/queue/c\nack:client-individual\n\n")
    try client.deliver(2)
    #expect(client.frames.last?["ack"] == nil)
    client.send("ACK\nsubscription:a\nmessage-id:1-2\n\n")
    #expect(client.settled == [2])
  }

  @Test func `a client of 1.0 can name a subscription by its destination`() throws {
    var client = Client("1.0")
    client.send("SUBSCRIBE\ndestination:/queue/c\n\n")
    try client.deliver(1)
    #expect(client.frames.last?["subscription"] == nil)
    _ = client.happened()
    client.send("UNSUBSCRIBE\ndestination:/queue/c\n\n")
    #expect(client.happened() == ["unsubscribe 1 0"])
  }

  @Test func `ack auto acknowledges what has been sent`() throws {
    var client = Client()
    client.send("SUBSCRIBE\nid:a\ndestination:/queue/c\n\n")
    try client.deliver(2)
    #expect(client.session.tokens.isEmpty)
    #expect(client.settled == [2])
    client.take(client.session.didPerform(client.operations.flatMap(\.self)))
    #expect(client.happened().suffix(2) == ["credit 1 of 1", "credit 1 of 1"])
  }

  @Test func `STOMPCredit leases few messages of all queues that the client has not read`() {
    var credit = STOMPCredit(unreadCount: 4)
    credit.open(1, prefetchCount: 6)
    #expect(credit.take(1) == 4)
    #expect(credit.take(1) == 0)
    for _ in 0..<4 { credit.didSend(of: 1) }
    #expect(credit.take(1) == 2, "the prefetch")
    credit.didSettle(3, of: 1)
    #expect(credit.take(1) == 2)
    for number in 2...8 { credit.open(number, prefetchCount: 10) }
    for number in 2...8 { #expect(credit.take(number) == 1) }
    for _ in 0..<4 { credit.didSend(of: 1) }
    #expect(credit.take(1) == 1)
    credit.close(1)
    #expect(credit.take(1) == 0)
  }

  @Test func `messages on their way to an ended subscription go back`() throws {
    var client = Client()
    client.send("SUBSCRIBE\nid:a\ndestination:/queue/c\nack:client\n\n")
    try client.deliver(2)
    _ = client.happened()
    client.send("UNSUBSCRIBE\nid:a\nreceipt:r\n\n")
    try client.deliver(3)
    #expect(client.happened() == ["unsubscribe 1 2", "receipt r", "give back 3"])
  }

  @Test func `a redelivery is marked`() throws {
    var client = Client()
    client.send("SUBSCRIBE\nid:a\ndestination:/queue/c\nack:client\n\n")
    try client.deliver(1, attempt: 2)
    #expect(client.frames.last?["redelivered"] == "true")
    #expect(client.frames.last?["datavault-attempt"] == "2")
  }

  @Test func `a transaction is done whole at COMMIT, and not at all after ABORT`() throws {
    var client = Client()
    client.send("SUBSCRIBE\nid:a\ndestination:/queue/c\nack:client-individual\n\n")
    try client.deliver(3)
    client.send("BEGIN\ntransaction:t\n\n")
    client.send("SEND\ndestination:/topic/c\ntransaction:t\n\nx")
    client.send("ACK\nid:1-1\ntransaction:t\n\n")
    #expect(client.operations.isEmpty)
    #expect(client.authorized == ["c"])
    client.send("COMMIT\ntransaction:t\nreceipt:r\n\n")
    #expect(client.operations.last?.count == 2)
    client.send("BEGIN\ntransaction:t\n\n")
    client.send("ACK\nid:1-3\ntransaction:t\n\n")
    client.send("ABORT\ntransaction:t\n\n")
    #expect(client.operations.count == 1)
    client.send("ACK\nid:1-3\n\n")
    #expect(client.settled == [3])
    #expect(client.session.tokens.count == 1)
  }

  @Test func `transactions are bounded in frames, bytes, number and time`() {
    var limits = STOMPLimits()
    limits.transactionFrameCount = 2
    limits.transactionByteCount = 1000
    limits.transactionCount = 1
    let send = "SEND\ndestination:/topic/c\ntransaction:t\n\n"
    for (frames, note) in [
      ([send, send, send], "fail: the transaction has more than 2 frames"),
      (
        [send + String(repeating: "x", count: 1000)],
        "fail: the transaction has more than 1000 bytes"
      ),
      (["BEGIN\ntransaction:u\n\n"], "fail: the connection has 1 transactions"),
      (["BEGIN\ntransaction:t\n\n"], "fail: the transaction is there already"),
    ] {
      var client = Client("1.2", limits)
      client.send("BEGIN\ntransaction:t\n\n")
      _ = client.happened()
      for frame in frames { client.send(frame) }
      #expect(client.happened() == [note])
    }
    var client = Client("1.2", limits)
    client.send("BEGIN\ntransaction:t\n\n")
    _ = client.happened()
    client.pass(.seconds(59))
    #expect(client.happened() == [])
    client.pass(.seconds(1))
    #expect(client.happened() == ["end: a transaction was open too long"])
  }

  @Test func `heart-beats go and are expected as agreed`() {
    var client = Client(heartBeat: "2000,5000")
    #expect(client.frames[0]["heart-beat"] == "1000,1000")
    client.session.didSend(atNanoseconds: client.now)
    #expect(!client.session.needsHeartBeat(atNanoseconds: client.now + 2_400_000_000))
    #expect(client.session.needsHeartBeat(atNanoseconds: client.now + 2_500_000_000))
    _ = client.happened()
    client.pass(.seconds(3))
    #expect(client.happened() == [])
    client.take(client.session.receive([0x0A], atNanoseconds: client.now))
    client.pass(.milliseconds(3999))
    #expect(client.happened() == [])
    client.pass(.milliseconds(1))
    #expect(client.happened() == ["end: the client has sent no heart-beat"])
  }

  @Test func `a client that does not connect, or does not finish a frame, is closed`() {
    var session = STOMPSession(atNanoseconds: 0)
    #expect(session.nextDeadlineNanoseconds == 30_000_000_000)
    #expect(session.timePassed(atNanoseconds: 30_000_000_000).count == 1)
    var client = Client()
    #expect(client.session.nextDeadlineNanoseconds == nil)
    client.take(client.session.receive(Array("SEND\n".utf8), atNanoseconds: client.now))
    _ = client.happened()
    client.pass(.seconds(30))
    #expect(client.happened() == ["end: a frame takes too long"])
  }

  @Test func `subscriptions are bounded, and their names unique`() {
    var limits = STOMPLimits()
    limits.subscriptionCount = 1
    for (id, note) in [
      ("a", "the subscription is there already"), ("b", "the connection has 1 subscriptions"),
    ] {
      var client = Client("1.2", limits)
      client.send("SUBSCRIBE\nid:a\ndestination:/topic/c\n\n")
      _ = client.happened()
      client.send("SUBSCRIBE\nid:\(id)\ndestination:/topic/d\n\n")
      #expect(client.happened() == ["fail: \(note)"])
    }
  }

  @Test func `a right that ends behind the end of the connection ends it no second time`() {
    var client = Client()
    client.send("SUBSCRIBE\nid:1\ndestination:/queue/c\n\n")
    client.send("SEND\ndestination:/queue/c\n\nx")
    client.send("DISCONNECT\nreceipt:r\n\n")
    _ = client.happened()
    client.take(client.session.recheck { _ in (.refused(.noGrant), .stopping) })
    #expect(client.happened() == [])
  }

  @Test func `DISCONNECT is answered behind everything, and nothing follows it`() {
    var client = Client()
    _ = client.happened()
    client.send("DISCONNECT\nreceipt:r\n\n")
    client.send("SEND\ndestination:/topic/c\n\nx")
    #expect(client.happened() == ["receipt r", "close"])
  }
}
