import Replication
import TestSupport
import Testing
import VaultCrypto

@Suite struct RequestTests {
  private static let origin = MessageOrigin(RecordNumber(AuthorID(1), 2), 3)

  static let requests: [Request] = [
    .receive(channel: "orders", consumer: "bücher", mostMessages: 10, leaseMilliseconds: 30_000),
    .receive(channel: "", consumer: "", mostMessages: 1000, leaseMilliseconds: .max),
    .settle([]),
    .settle([
      settlement(.acknowledged), settlement(.released(countsAttempt: true, reason: "later")),
      settlement(.released(countsAttempt: false, reason: "")), settlement(.rejected(reason: "no")),
    ]),
    .extend([], leaseMilliseconds: 0),
    .extend([LeaseID(1), LeaseID(.max)], leaseMilliseconds: 1),
  ].map { Request(epoch: EpochID(5), beat: 6, $0) }

  static let replies: [Reply] = [
    .leased([]),
    .leased([
      LeasedMessage(message: origin, timetoken: 100, lease: LeaseID(7), attempt: 1),
      LeasedMessage(message: origin, timetoken: -1, lease: LeaseID(8), attempt: .max),
    ]),
    .settled(SettlementResult.allCases), .extended([true, false]), .extended([]),
    .notOwner(nil), .notOwner(MemberID(9)), .refused(reason: "the queue is full"),
  ]

  private static func settlement(_ outcome: Settlement.Outcome) -> LeaseSettlement {
    LeaseSettlement(lease: LeaseID(4), outcome: outcome)
  }

  @Test(arguments: requests)
  func `a request is read as it was written, and not if it is cut or goes on`(
    _ request: Request
  ) throws {
    let bytes = try request.encoded()
    #expect(try Request(decoding: bytes) == request)
    for count in bytes.indices {
      #expect(throws: RequestError.self) { try Request(decoding: Array(bytes[..<count])) }
    }
    #expect(throws: RequestError.self) { try Request(decoding: bytes + [0]) }
  }

  @Test(arguments: replies)
  func `a reply is read as it was written, and not if it is cut or goes on`(
    _ reply: Reply
  ) throws {
    let bytes = try reply.encoded()
    #expect(try Reply(decoding: bytes) == reply)
    for count in bytes.indices {
      #expect(throws: RequestError.self) { try Reply(decoding: Array(bytes[..<count])) }
    }
    #expect(throws: RequestError.self) { try Reply(decoding: bytes + [0]) }
  }

  @Test func `the bytes are those of the specification`() throws {
    let extend = Request(
      epoch: EpochID(1), beat: 2, .extend([LeaseID(3)], leaseMilliseconds: 256))
    #expect(
      try extend.encoded().hexadecimal == """
        00000000000000000000000000000001000000000000000203\
        00000001000000000000000000000000000000030000000000000100
        """)
    let leased = Reply.leased([
      LeasedMessage(message: Self.origin, timetoken: 100, lease: LeaseID(7), attempt: 1)
    ])
    #expect(
      try leased.encoded().hexadecimal == """
        0100000001000000000000000000000000000000010000000000000002000000030000000000000064\
        0000000000000000000000000000000700000001
        """)
    #expect(try Reply.settled([.done, .lost, .unknown]).encoded() == [2, 0, 0, 0, 3, 0, 1, 2])
  }

  @Test func `changed bytes are read as another value, or refused`() throws {
    for request in Self.requests {
      let bytes = try request.encoded()
      for index in bytes.indices {
        for bit in 0..<8 {
          var changed = bytes
          changed[index] ^= 1 << UInt8(bit)
          guard let other = try? Request(decoding: changed) else { continue }
          #expect(other != request)
          #expect(try other.encoded() == changed)
        }
      }
    }
  }

  @Test func `more elements than allowed are neither written nor read`() throws {
    func request(_ count: Int) -> Request {
      Request(
        epoch: EpochID(1), beat: 0,
        .extend((0..<count).map { LeaseID(UInt128($0)) }, leaseMilliseconds: 1))
    }
    let most = request(Request.mostElements)
    var bytes = try most.encoded()
    #expect(try Request(decoding: bytes) == most)
    #expect(throws: RequestError.self) { try request(Request.mostElements + 1).encoded() }
    // The count, and one element more.
    bytes.replaceSubrange(25..<29, with: [0, 0, 3, 233])
    bytes.insert(contentsOf: [UInt8](repeating: 0, count: 16), at: 29)
    #expect(throws: RequestError.self) { try Request(decoding: bytes) }
    let replies: [Reply] = [
      .extended([Bool](repeating: true, count: 1001)),
      .settled([SettlementResult](repeating: .done, count: 1001)),
    ]
    for reply in replies { #expect(throws: RequestError.self) { try reply.encoded() } }
  }

  @Test(arguments: [0, 1001, UInt32.max])
  func `a number of messages out of range is neither written nor read`(_ most: UInt32) throws {
    func request(_ most: UInt32) -> Request {
      Request(
        epoch: EpochID(1), beat: 0,
        .receive(channel: "a", consumer: "b", mostMessages: most, leaseMilliseconds: 1))
    }
    #expect(throws: RequestError.self) { try request(most).encoded() }
    var bytes = try request(7).encoded()
    let number = (0..<4).map { UInt8(truncatingIfNeeded: most >> UInt32(24 - 8 * $0)) }
    bytes.replaceSubrange(31..<35, with: number)
    #expect(throws: RequestError.self) { try Request(decoding: bytes) }
    bytes.replaceSubrange(31..<35, with: [0, 0, 0, 7])
    #expect(try Request(decoding: bytes) == request(7))
  }

  @Test func `a text that its length cannot say is not written`() throws {
    let longest = String(repeating: "a", count: 65_535)
    func settle(_ reason: String) -> Request {
      Request(
        epoch: EpochID(1), beat: 0, .settle([Self.settlement(.rejected(reason: reason))]))
    }
    #expect(try Request(decoding: settle(longest).encoded()) == settle(longest))
    #expect(throws: RequestError.self) { try settle(longest + "a").encoded() }
    #expect(throws: RequestError.self) { try Reply.refused(reason: longest + "ü").encoded() }
  }

  @Test func `only the owner ends a lease`() throws {
    let request = Request(
      epoch: EpochID(1), beat: 0, .settle([Self.settlement(.leaseEnded)]))
    #expect(throws: RequestError.self) { try request.encoded() }
    var bytes = try Request(
      epoch: EpochID(1), beat: 0, .settle([Self.settlement(.acknowledged)])
    ).encoded()
    bytes[bytes.count - 1] = 4
    #expect(throws: RequestError.self) { try Request(decoding: bytes) }
  }

  @Test func `a reply answers a request of its kind with as many elements`() throws {
    let (receive, settle, extend) = (Self.requests[0], Self.requests[3], Self.requests[5])
    #expect(Self.replies[1].answers(receive))
    #expect(Reply.settled([.done, .lost, .done, .done]).answers(settle))
    #expect(!Reply.settled([.done]).answers(settle))
    #expect(Reply.extended([true, false]).answers(extend))
    #expect(!Reply.extended([true]).answers(extend))
    #expect(!Reply.extended([true, false]).answers(settle))
    #expect(!Self.replies[1].answers(extend))
    var single = receive
    single.body = .receive(channel: "a", consumer: "b", mostMessages: 1, leaseMilliseconds: 1)
    #expect(!Self.replies[1].answers(single))
    for request in Self.requests {
      #expect(Reply.notOwner(nil).answers(request))
      #expect(Reply.refused(reason: "").answers(request))
    }
  }
}
