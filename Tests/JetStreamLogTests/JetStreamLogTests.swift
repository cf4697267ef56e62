import BrokerCluster
import FileLayer
import Foundation
import Logging
import Replication
import Synchronization
import TestSupport
import Testing
import VaultCrypto

@testable import JetStreamLog

/// A shard on brokers of a test's own.
final class BrokerShard: Sendable {
  let cluster: BrokerCluster
  private let secret: SecretBytes
  private let author = AuthorID(7)

  init(_ options: BrokerCluster.Options = BrokerCluster.Options()) throws {
    cluster = try BrokerCluster(options)
    secret = KeyRing(newShard: .system).encodedBytes()
  }

  func ring() throws -> KeyRing { try KeyRing(decoding: secret) }

  func log(
    user: consuming NATSUserKey? = nil, _ change: (inout BrokerSettings) -> Void = { _ in }
  ) throws -> JetStreamLog {
    var settings = BrokerSettings(addresses: cluster.addresses)
    change(&settings)
    let time = try SystemTimeSource()
    return try JetStreamLog(
      settings, ring: ring(), user: user, now: { time.sinceBoot },
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
  }

  /// A log with its stream, which the brokers have made once they had a leader.
  func provisioned(replicas: Int, user: consuming NATSUserKey? = nil) async throws -> JetStreamLog {
    let log = try log(user: user)
    var refusal: LogError?
    try await eventually(
      "the brokers make the stream: \(refusal?.message ?? "")\n\(cluster.complaints)"
    ) {
      do throws(LogError) {
        try log.provision(replicas: replicas)
        return true
      } catch {
        refusal = error
        return error.code == .streamExists
      }
    }
    return log
  }

  /// A record with a number of one author.
  func record(_ number: UInt64, byteCount: Int = 100) throws -> SealedRecord {
    try SealedRecord(
      RecordNumber(author, number), key: 1,
      sealed: [UInt8](repeating: UInt8(number % 251), count: byteCount))
  }
}

extension JetStreamLog {
  /// All records from a place on, until the end of the stream is read.
  func all(from place: UInt64 = 0) throws -> [LogEntry] {
    var entries: [LogEntry] = []
    var place = place
    while true {
      let batch = try read(at: place, mostBytes: 1 << 20, wait: .milliseconds(200))
      let next = batch.entries.filter { $0.sequence > place }
      entries += next
      if let last = next.last { place = last.sequence }
      if place >= batch.last { return entries }
    }
  }
}

extension JetStreamLog {
  /// All records, when there are so many.
  func all(_ count: Int) async throws -> [LogEntry] {
    try await eventually("the stream has \(count) records") {
      let entries = try await onBlockingThread("test.read") { try self.all() }
      return entries.count >= count ? entries : nil
    }
  }
}

@Suite(.enabled(if: BrokerCluster.program != nil, Comment(rawValue: BrokerCluster.skipReason)))
struct JetStreamLogTests {
  private static var single: BrokerCluster.Options {
    var options = BrokerCluster.Options()
    options.count = 1
    return options
  }

  @Test func `records are read back in their order, with what comes before them`() async throws {
    let shard = try BrokerShard(Self.single)
    let log = try await shard.provisioned(replicas: 1)
    let empty = try log.read(at: 0, mostBytes: 1 << 20, wait: .milliseconds(100))
    #expect(empty.entries.isEmpty && empty.first == 1 && empty.last == 0)
    let records = try (1...1200).map { try shard.record(UInt64($0)) }
    try log.append(records)
    let entries = try await log.all(1200)
    try #require(entries.count == 1200)
    #expect(zip(entries, records).allSatisfy { $0.record == $1 })
    #expect(zip(entries, UInt64(1)...).allSatisfy { $0.sequence == $1 })
    let batch = try log.read(at: 1199, mostBytes: 1 << 20, wait: .milliseconds(100))
    #expect(batch.entries.map(\.sequence) == [1199, 1200])
    // The leader and the consumer tell the same time of a record.
    #expect(batch.entries[0].storedAt == entries[1198].storedAt)
    #expect(batch.last == 1200)
    log.close()
  }

  @Test func `a read waits for the first record, and no longer`() async throws {
    let shard = try BrokerShard(Self.single)
    let log = try await shard.provisioned(replicas: 1)
    let other = try shard.log()
    _ = try log.read(at: 0, mostBytes: 1 << 20, wait: .zero)
    let found = Mutex<Applier.Batch?>(nil)
    let reading = Task {
      let batch = try await Self.read(log, at: 0, wait: .seconds(3600))
      found.withLock { $0 = batch }
    }
    // Nothing shows that the read has begun.
    try await Task.sleep(for: .milliseconds(100))
    try other.append([shard.record(1)])
    let batch = try await eventually("the record is read") { found.withLock { $0 } }
    try await reading.value
    #expect(batch.entries.map(\.sequence) == [1])
    let idle = try log.read(at: 1, mostBytes: 1 << 20, wait: .milliseconds(50))
    #expect(idle.entries.map(\.sequence) == [1] && idle.last == 1)
    log.close()
    other.close()
  }

  private static func read(
    _ log: JetStreamLog, at place: UInt64, wait: Duration
  ) async throws -> Applier.Batch {
    try await onBlockingThread("test.read") {
      try log.read(at: place, mostBytes: 1 << 20, wait: wait)
    }
  }

  @Test func `a trim removes what is before it, and nothing else`() async throws {
    let shard = try BrokerShard(Self.single)
    let log = try await shard.provisioned(replicas: 1)
    try log.append(try (1...10).map { try shard.record($0) })
    _ = try await log.all(10)
    try log.trim(through: 0)
    #expect(try log.all().count == 10)
    try log.trim(through: 6)
    #expect(try log.all(from: 6).map(\.sequence) == [7, 8, 9, 10])
    let lost = try log.read(at: 3, mostBytes: 1 << 20, wait: .milliseconds(100))
    #expect(lost.first == 7 && lost.entries.first?.sequence != 3)
    try log.trim(through: 10)
    let end = try log.read(at: 10, mostBytes: 1 << 20, wait: .milliseconds(50))
    #expect(end.entries.isEmpty && end.first == 11 && end.last == 10)
    log.close()
  }

  @Test func `a stream is made by an operator alone, and once`() async throws {
    let shard = try BrokerShard(Self.single)
    let log = try shard.log()
    try await eventually("the broker answers") {
      do throws(LogError) {
        try log.connect()
        return true
      } catch { return error.code == .streamMissing }
    }
    let missing = #expect(throws: LogError.self) { try log.connect() }
    #expect(missing?.code == .streamMissing)
    try log.provision(replicas: 1)
    let again = #expect(throws: LogError.self) { try log.provision(replicas: 1) }
    #expect(again?.code == .streamExists)
    try log.connect()
    log.close()
    let closed = #expect(throws: LogError.self) { try log.connect() }
    #expect(closed?.code == .closed)
  }

  @Test func `bytes that are no record are handed on, and skipped by their number`() async throws {
    let shard = try BrokerShard(Self.single)
    let log = try await shard.provisioned(replicas: 1)
    try log.append([
      try shard.record(1), SealedRecord(reading: Array("garbage".utf8)), try shard.record(2),
    ])
    let entries = try await log.all(3)
    #expect(entries.map(\.record.name.number) == [1, 0, 2])
    #expect(entries[1].record.bytes == Array("garbage".utf8))
    log.close()
  }

  @Test func `only a node whose nkey the brokers know logs in`() async throws {
    let keys = NodeKeys(from: .system)
    var options = Self.single
    options.users = [try keys.userKey().publicKey.text]
    let shard = try BrokerShard(options)
    let log = try await shard.provisioned(replicas: 1, user: try keys.userKey())
    try log.append([try shard.record(1)])
    #expect(try await log.all(1).count == 1)
    for other in [try shard.log(user: try NodeKeys(from: .system).userKey()), try shard.log()] {
      let error = #expect(throws: LogError.self) { try other.connect() }
      #expect(error?.code == .notPermitted)
    }
    log.close()
  }

  @Test func `a broker without TLS is refused where TLS is demanded`() async throws {
    let shard = try BrokerShard(Self.single)
    _ = try await shard.provisioned(replicas: 1)
    let log = try shard.log { settings in
      settings.addresses = settings.addresses.map {
        $0.replacingOccurrences(of: "nats://", with: "tls://")
      }
    }
    let error = #expect(throws: LogError.self) { try log.connect() }
    #expect(error?.code == .unreachable)
  }

  @Test(arguments: [
    "", "nats://", "nats://a", "http://a:1", "nats://a:1\r\nPUB x 0", "nats://u:p@a:1",
    "nats://a:99999",
  ])
  func `an address that is none is refused`(_ address: String) throws {
    #expect(throws: LogError.self) { try BrokerSettings(addresses: [address]).check() }
  }

  @Test func `a request whose answer would go to another subject is not answered`() async throws {
    let shard = try BrokerShard(Self.single)
    let log = try await shard.provisioned(replicas: 1)
    let requests = Mutex<[[UInt8]]>([])
    try log.serve(as: MemberID(1)) { request, reply in
      requests.withLock { $0.append(request) }
      reply(request)
    }
    try log.connect()
    let other = try shard.log()
    try other.connect()
    let subject = log.names.requests(to: MemberID(1))
    try other.connection().publish(
      [1], to: subject, reply: "$JS.API.STREAM.DELETE.\(log.names.stream)")
    // It comes after the other one.
    let answer = try await other.request([2], to: MemberID(1), within: .seconds(60)) { _ in true }
    #expect(answer == [2])
    #expect(requests.withLock { $0 } == [[2]])
    log.close()
    other.close()
  }

  @Test func `members ask each other, and a silent one is given up`() async throws {
    let shard = try BrokerShard(Self.single)
    let isAny: @Sendable ([UInt8]) -> Bool = { _ in true }
    let a = try await shard.provisioned(replicas: 1)
    let b = try shard.log()
    try b.serve(as: MemberID(2)) { request, reply in reply(request.reversed()) }
    try b.connect()
    try a.connect()
    #expect(
      try await a.request([1, 2, 3], to: MemberID(2), within: .seconds(5), isReply: isAny) == [
        3, 2, 1,
      ])
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in UInt8(0)..<100 {
        group.addTask {
          let reply = try await a.request(
            [number], to: MemberID(2), within: .seconds(5), isReply: isAny)
          #expect(reply == [number])
        }
      }
      try await group.waitForAll()
    }
    await #expect(throws: LogError.self) {
      try await a.request([1], to: MemberID(3), within: .milliseconds(200), isReply: isAny)
    }
    a.close()
    b.close()
  }

  @Test func `what is no reply does not end a request, and the reply behind it does`() async throws
  {
    let shard = try BrokerShard(Self.single)
    let a = try await shard.provisioned(replicas: 1)
    let b = try shard.log()
    try b.serve(as: MemberID(2)) { request, reply in
      for bytes in [[0], request, Array(request.reversed())] { reply(bytes) }
    }
    try b.connect()
    try a.connect()
    let reply = try await a.request([1, 2, 3], to: MemberID(2), within: .seconds(30)) {
      $0 == [3, 2, 1]
    }
    #expect(reply == [3, 2, 1])
    a.close()
    b.close()
  }
}
