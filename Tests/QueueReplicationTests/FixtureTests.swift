import Foundation
import MessagingQueue
import TestSupport
import Testing
import VaultCrypto

@_spi(Testing) @testable import QueueReplication
@testable import Replication

/// The files in `Fixtures/replication`.
@Suite struct FixtureTests {
  typealias Body = Replication.Record.Body

  static func path(_ name: String) -> String {
    Repository.path("Fixtures/replication/\(name)")
  }

  static func names(_ folder: String, _ kind: String = "") -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: path(folder))) ?? [])
      .filter { $0.hasSuffix(kind) }.sorted()
  }

  static func bytes(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: path(name))))
  }

  static func secret(_ name: String) throws -> SecretBytes {
    SecretBytes(copying: try bytes(name))
  }

  static func ring() throws -> KeyRing {
    try KeyRing(decoding: secret("positive/two-keys.ring"))
  }

  static func nodeKeys() throws -> NodeKeys {
    try NodeKeys(decoding: secret("positive/keys.node"))
  }

  /// The nonce of all files.
  static let random = unsafe RandomSource { target in
    for index in target.indices { unsafe target[index] = 0xA0 + UInt8(index) }
  }

  // MARK: What the files say

  static let author = AuthorID(0xA1)
  static let epoch = EpochID(0xE1)
  static let lease = LeaseID(0x1E)
  static let other = MemberID(0x0B)
  static let origin = MessageOrigin(RecordNumber(author, 7), 2)
  static let time: Int64 = 17_000_000_000_000_000
  static let place = time - 100

  static func settlement(
    _ outcome: Replication.Settlement.Outcome, due: Int64? = nil
  ) -> Body {
    .settlement(
      Replication.Settlement(
        consumer: "w", message: origin, lease: lease, epoch: epoch, outcome: outcome, due: due))
  }

  /// What a record that is no operation says; nil for an operation.
  static func body(_ name: String, _ member: MemberID) -> Body? {
    switch name.prefix(while: { $0 != "." }) {
    case "commit-of-nothing": .commit([])
    case "epoch": .epoch(epoch, predecessor: EpochID(0xE0), member)
    case "epoch-the-first": .epoch(epoch, predecessor: nil, member)
    case "heartbeat", "heartbeat-under-an-older-key": .heartbeat(epoch, beat: 3)
    case "join": .join(member, safe: 40)
    case "join-without-a-database": .join(member, safe: nil)
    case "key-drop": .keyDrop(4)
    case "key-switch": .keySwitch(4)
    case "leave": .leave(member)
    case "repair": .repair(from: place, to: time)
    case "report":
      .report(
        member, safe: 40, RecordDigest(bytes: Array(0xD0...0xEF)), newestKey: 4, oldestKey: 3)
    case "settlement-acknowledged": settlement(.acknowledged)
    case "settlement-lease-ended": settlement(.leaseEnded)
    case "settlement-rejected": settlement(.rejected(reason: "never"))
    case "settlement-released":
      settlement(.released(countsAttempt: true, reason: "not yet"), due: time + 50)
    case "settlement-released-not-counted":
      settlement(.released(countsAttempt: false, reason: ""))
    case "trim": .trim(through: 40)
    default: nil
    }
  }

  static func operation(_ name: String) throws -> QueueOperation? {
    let c = try Channel("c")
    let w = try Consumer("w")
    let found = [Timetoken(unchecked: 1)]
    func at(_ place: Int64) -> Timetoken { Timetoken(unchecked: place) }
    switch name.dropFirst("operation-".count).prefix(while: { $0 != "." }) {
    case "add-consumer": return .addConsumer(w, of: c, maximumAttempts: 3)
    case "add-missing-consumer": return .addMissingConsumer(w, of: c)
    case "cancel": return .cancel(found, of: c)
    case "keep-acknowledged": return .keepAcknowledged(application: "a")
    case "purge": return .purge(c, after: at(9), before: at(10), count: 256)
    case "redrive": return .redrive(found, of: c, for: w)
    case "remove-channels": return .removeChannels(application: "a", before: at(9), [1])
    case "remove-consumer": return .removeConsumer(w, of: c)
    case "remove-dead-letters": return .removeDeadLetters(nil, of: c, for: w)
    case "reserve-places": return .reservePlaces(count: 100)
    case "set-retention":
      var retention = Retention()
      retention.keepsAcknowledged = false
      retention.discardsUnacknowledged = true
      retention.maximumAge = .nanoseconds(500)
      retention.maximumMessageCount = 6
      retention.maximumByteCount = 7
      return .setRetention(retention, of: c)
    case "sweep": return .sweep(c, after: nil, count: 256)
    case "sweep-application":
      return .sweepApplication("a", before: at(9), channels: [1, 2], after: at(8), count: 256)
    default: return nil
    }
  }

  // MARK: Reading a file as a node does

  /// Reads a record of one part.
  static func record(_ bytes: [UInt8]) throws -> Replication.Record {
    let part = try RecordPart(
      decoding: RingSeal(ring(), random: random).open(SealedRecord(parsing: bytes)))
    return try Replication.Record(decoding: part.share)
  }

  static func operation(of bytes: [UInt8]) throws -> QueueOperation {
    try QueueOperation(decoding: bytes) { _ in Timetoken(unchecked: 1) }
  }

  static func message(_ message: PublishedMessage) throws -> Message {
    try Message(
      channel: message.channel, deduplicationID: message.deduplicationID,
      orderingKey: message.orderingKey, content: message.content)
  }

  // MARK: Positive

  @Test(arguments: names("positive", ".record").filter { !$0.hasPrefix("part") })
  func `a record says what its fixture was made to say, and is sealed to the same bytes`(
    name: String
  ) throws {
    let bytes = try Self.bytes("positive/\(name)")
    let record = try Self.record(bytes)
    let member = try Self.nodeKeys().member()
    #expect(record.time == Self.time)
    switch record.body {
    case .operation(let bytes):
      let operation = try Self.operation(of: bytes)
      #expect("\(operation)" == "\(try #require(try Self.operation(name)))")
      #expect(try operation.encoded { _ in Self.origin } == bytes)
    case .rows(let changes):
      let rows = try QueueReplicationProbe.Rows().rows(after: changes)
      #expect(rows?.contains { $0.contains("three") } == true)
    case .commit(let messages) where name == "commit.record":
      let read = try messages.map(Self.message)
      #expect(read.map(\.channel.name) == ["orders", "a.b", "c"])
      #expect(read.map(\.deduplicationID) == [nil, "once", nil])
      #expect(read.map(\.orderingKey) == [nil, nil, "key"])
      #expect(read.map(\.payload) == ["one", "two", "one"].map { Array($0.utf8) })
      #expect(read.map(\.headers) == [[:], ["a": "b", "c": ""], [:]])
      #expect(read.map(\.priority.rawValue) == [4, 9, 4])
      #expect(read.map { $0.content(at: 0) } == messages.map(\.content))
      #expect(read[1].expirationTicks == Self.time + 20)
    default: #expect(record.body == Self.body(name, member))
    }
    let read = try SealedRecord(parsing: bytes)
    #expect(read.name == RecordNumber(Self.author, 5))
    let part = RecordPart(isContinued: false, follows: nil, share: record.encoded)
    let sealed = try RingSeal(Self.ring(), random: Self.random)
      .seal(part.bytes, as: read.name, under: name.contains("older-key") ? 3 : 4)
    #expect(sealed.bytes == bytes)
  }

  @Test func `two parts make a record`() throws {
    let seal = RingSeal(try Self.ring(), random: Self.random)
    let parts = try [1, 2].map { number in
      let record = try SealedRecord(parsing: Self.bytes("positive/part-\(number)-of-2.record"))
      #expect(record.name == RecordNumber(Self.author, UInt64(number)))
      return try RecordPart(decoding: seal.open(record))
    }
    #expect(parts.map(\.isContinued) == [true, false])
    #expect(parts.map(\.follows) == [RecordNumber(AuthorID(0xA0), 9), nil])
    let record = try Replication.Record(decoding: parts[0].share + parts[1].share)
    guard case .commit(let messages) = record.body else { throw RecordError.unknownKind }
    #expect(try messages.map(Self.message).map(\.payload) == [Array("one".utf8)])
  }

  @Test(arguments: names("positive", ".request"))
  func `a request asks what its fixture was made to ask`(name: String) throws {
    let body: Request.Body =
      switch name {
      case "extend.request": .extend([Self.lease], leaseMilliseconds: 30_000)
      case "settle.request":
        .settle([
          LeaseSettlement(lease: Self.lease, outcome: .acknowledged),
          LeaseSettlement(
            lease: Self.lease, delayMilliseconds: 1_500,
            outcome: .released(countsAttempt: true, reason: "not yet")),
          LeaseSettlement(
            lease: Self.lease, outcome: .released(countsAttempt: false, reason: "")),
          LeaseSettlement(lease: Self.lease, outcome: .rejected(reason: "never")),
        ])
      default:
        .receive(channel: "c", consumer: "w", mostMessages: 10, leaseMilliseconds: 30_000)
      }
    let member = try Self.nodeKeys().member()
    let bytes = try Self.bytes("positive/\(name)")
    let seal = RequestSeal(try Self.ring(), member: member, random: Self.random)
    let request = Request(epoch: Self.epoch, beat: 3, body)
    let received = try seal.openRequest(bytes)
    #expect(received.request == request && received.sender == Self.other)
    let sealed = try RequestSeal(Self.ring(), member: Self.other, random: Self.random).seal(
      request, id: RequestID(0x4E), to: member, under: name.contains("older-key") ? 3 : 4)
    #expect(sealed == bytes)
  }

  @Test(arguments: names("positive", ".reply"))
  func `a reply says what its fixture was made to say`(name: String) throws {
    let member = try Self.nodeKeys().member()
    let expected: Reply =
      switch name {
      case "extended.reply": .extended([true, false])
      case "leased.reply":
        .leased([
          LeasedMessage(
            message: Self.origin, timetoken: Self.place, lease: Self.lease, attempt: 2)
        ])
      case "not-the-owner.reply": .notOwner(member)
      case "not-the-owner-and-none-known.reply": .notOwner(nil)
      case "refused.reply": .refused(reason: "too old")
      default: .settled([.done, .lost, .unknown, .dead])
      }
    let seal = RequestSeal(try Self.ring(), member: member, random: Self.random)
    let reply = try seal.openReply(
      Self.bytes("positive/\(name)"), to: RequestID(0x4E), from: Self.other)
    #expect(reply == expected)
  }

  @Test func `key rings, keys of nodes and of copies are those of their fixtures`() throws {
    let ring = try Self.ring()
    #expect(ring.keyNumbers == 3...4)
    #expect(try ring.key(4).array() == Array(0x40...0x5F))
    #expect(try KeyRing(decoding: Self.secret("positive/64-keys.ring")).keyNumbers == 1...64)
    let member = try Self.nodeKeys().member()
    #expect(member.hexadecimal == "a275152f4ba2e667b99b76a4b206519c")
    #expect(try ring.copyKey(for: member).array() == Self.bytes("positive/copy.key"))
  }

  @Test func `join requests and invitations hand on the ring`() throws {
    let keys = try Self.nodeKeys()
    let own = try JoinRequest(member: keys.member(), keys: keys)
    #expect(own.bytes == (try Self.bytes("positive/file.join")))
    #expect(try own.fingerprint().description == "WMXP6-DY24B-JZAHU-JWCP2-IQAB2")
    #expect(try JoinRequest(parsing: Self.bytes("positive/in-another-order.join")) == own)
    for name in ["file", "with-a-line-feed"] {
      let invitation = try Invitation(parsing: Self.bytes("positive/\(name).invitation"))
      #expect(invitation.fingerprint.description == "7QM6N-OLFOU-6NUKG-CXKVZ-BFIYC")
      let contents = try invitation.open(
        with: keys, member: keys.member(), confirmed: invitation.fingerprint)
      let hasRing =
        try contents.ring.encodedBytes().array() == Self.bytes("positive/two-keys.ring")
      #expect(hasRing)
      let joiner = try JoinerSettings(decoding: contents.settings)
      let hasKey = joiner.applicationsKey.array() == Array(0xE0...0xFF)
      #expect(hasKey)
      #expect(joiner.settings.text == (try Self.bytes("positive/brokers.settings")))
    }
    let other = try ClusterSettings(
      parsing: Self.bytes("positive/with-an-authority.settings"))
    #expect(other.authority == "-----BEGIN CERTIFICATE-----\n")
    #expect(!other.logsIn && other.syncSeconds == 0)
  }

  @Test func `no fixture is missing`() {
    #expect(Self.names("positive").count == 55)
    #expect(Self.names("negative").count == 136)
  }
}
