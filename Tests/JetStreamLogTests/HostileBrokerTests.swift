import BrokerCluster
import FileLayer
import Foundation
import Glibc
import JetStreamLog
import Replication
import Synchronization
import TestSupport
import Testing
import VaultCrypto

/// Brokers and networks that do what they should not.
@Suite(
  .enabled(if: BrokerCluster.program != nil, Comment(rawValue: BrokerCluster.skipReason)),
  .serialized, .timeLimit(.minutes(10)))
struct HostileBrokerTests {
  private static var single: BrokerCluster.Options {
    var options = BrokerCluster.Options()
    options.count = 1
    return options
  }

  /// Appends until all numbers were read back, as a relay does.
  private func bringThrough(
    _ numbers: ClosedRange<UInt64>, _ log: JetStreamLog, _ shard: BrokerShard, byteCount: Int = 100
  ) async throws -> [LogEntry] {
    var entries: [LogEntry] = []
    var next = numbers.lowerBound
    try await eventually("all records are read back") {
      guard next <= numbers.upperBound else { return true }
      let records = try (next...numbers.upperBound).map {
        try shard.record($0, byteCount: byteCount)
      }
      try? await onBlockingThread("test.append") { try log.append(records) }
      let place = entries.last?.sequence ?? 0
      let batch = try? await onBlockingThread("test.read") {
        try log.read(at: place, mostBytes: 64 << 20, wait: .milliseconds(200))
      }
      for entry in batch?.entries ?? [] where entry.sequence > (entries.last?.sequence ?? 0) {
        entries.append(entry)
        if entry.record.name.number == next { next += 1 }
      }
      return next > numbers.upperBound
    }
    return entries
  }

  @Test func `a network that takes no bytes ends an append with an error, and breaks no record`()
    async throws
  {
    let shard = try BrokerShard(Self.single)
    let direct = try await shard.provisioned(replicas: 1)
    let proxy = try BrokerProxy(to: shard.cluster.port(of: 0))
    let log = try shard.log { $0.addresses = [proxy.address] }
    try log.connect()
    proxy.hold(true)
    // More than the buffers of two sockets take.
    let records = try (1...64).map { try shard.record($0, byteCount: 500_000) }
    await #expect(throws: LogError.self) {
      try await onBlockingThread("test.append") { try log.append(records) }
    }
    proxy.hold(false)
    _ = try await bringThrough(1...64, log, shard, byteCount: 500_000)
    for entry in try await onBlockingThread("test.read", { try direct.all() }) {
      let number = Int(entry.record.name.number)
      try #require(records.indices.contains(number - 1), "\(entry.sequence): \(number)")
      #expect(entry.record == records[number - 1])
    }
    log.close()
    direct.close()
  }

  @Test func `a network that cuts connections loses and breaks nothing that was read back`()
    async throws
  {
    let shard = try BrokerShard(Self.single)
    let direct = try await shard.provisioned(replicas: 1)
    let proxy = try BrokerProxy(to: shard.cluster.port(of: 0))
    let log = try shard.log { $0.addresses = [proxy.address] }
    let cutting = Task {
      while !Task.isCancelled {
        // A cut comes at any moment.
        try await Task.sleep(for: .milliseconds(700))
        proxy.cut()
      }
    }
    var entries: [LogEntry] = []
    for part in 0..<UInt64(8) {
      entries = try await bringThrough(1...(part + 1) * 30, log, shard, byteCount: 20_000)
      // A cut can also come while nothing is sent.
      try await Task.sleep(for: .milliseconds(150))
    }
    cutting.cancel()
    let all = try await onBlockingThread("test.read") { try direct.all() }
    #expect(Array(all.prefix(entries.count)) == entries)
    for entry in all {
      #expect(entry.record == (try shard.record(entry.record.name.number, byteCount: 20_000)))
    }
    log.close()
    direct.close()
  }

  @Test(arguments: [true, false])
  func `a reader whom no consumer helps reads at the leader`(isMade: Bool) async throws {
    let shard = try BrokerShard(Self.single)
    let direct = try await shard.provisioned(replicas: 1)
    let proxy = try BrokerProxy(to: shard.cluster.port(of: 0)) {
      [subject = direct.names.records] message in
      // What a consumer sends has the record's subject, and what is read at the leader has not.
      let isLost =
        isMade
        ? message.direction == .toNode && message.subject == subject
        : message.subject.contains(".CONSUMER.CREATE.")
      return isLost ? [] : [message]
    }
    let log = try shard.log { $0.addresses = [proxy.address] }
    let records = try (1...250).map { try shard.record($0) }
    try direct.append(Array(records.prefix(230)))
    #expect(try await log.all(230).map(\.record) == Array(records.prefix(230)))
    // What comes later, while it waits.
    let late = Task {
      // Nothing shows that the reader waits.
      try await Task.sleep(for: .milliseconds(300))
      try direct.append(Array(records.suffix(20)))
    }
    var entries: [LogEntry] = []
    try await eventually("the late records are read") {
      entries += try await onBlockingThread("test.read") {
        [place = entries.last?.sequence ?? 230] in
        try log.read(at: place, mostBytes: 1 << 20, wait: .milliseconds(100)).entries
          .filter { $0.sequence > place }
      }
      return entries.count >= 20
    }
    #expect(entries.map(\.record) == Array(records.suffix(20)))
    try await late.value
    log.close()
    direct.close()
  }

  @Test func `what came for earlier readers, and too much of it, stops no later one`() async throws
  {
    let shard = try BrokerShard(Self.single)
    let direct = try await shard.provisioned(replicas: 1)
    let late = Mutex((isLate: true, messages: [WireMessage]()))
    let proxy = try BrokerProxy(to: shard.cluster.port(of: 0)) {
      [subject = direct.names.records] message in
      guard message.direction == .toNode else { return [message] }
      return late.withLock { late in
        // What is read at the leader has another subject.
        if late.isLate, message.subject == subject {
          late.messages.append(message)
          return []
        }
        defer { if !late.isLate { late.messages = [] } }
        return late.isLate ? [message] : late.messages + [message]
      }
    }
    let log = try shard.log { $0.addresses = [proxy.address] }
    let records = try (1...400).map { try shard.record($0) }
    try direct.append(records)
    _ = try await direct.all(400)
    // Each read makes a reader, which asks for all.
    for _ in 0..<8 {
      let found = try await onBlockingThread("test.read") {
        try log.read(at: 0, mostBytes: 1 << 20, wait: .zero)
      }
      #expect(found.entries.map(\.record) == Array(records.prefix(100)))
    }
    try await eventually("the records are on their way") {
      late.withLock { $0.messages.count > 2_400 }
    }
    late.withLock { $0.isLate = false }
    // The leader would give a hundred of them.
    try await eventually("a consumer brings the records") {
      // A consumer brings records between two reads.
      try await Task.sleep(for: .milliseconds(200))
      let found = try? await onBlockingThread("test.read") {
        try log.read(at: 0, mostBytes: 1 << 20, wait: .milliseconds(200)).entries.map(\.record)
      }
      return found.map { $0.count > 100 && $0 == Array(records.prefix($0.count)) } ?? false
    }
    log.close()
    direct.close()
  }

  @Test func `a stream whose settings could remove records is refused, also later`() async throws {
    let shard = try BrokerShard(Self.single)
    let log = try await shard.provisioned(replicas: 1)
    try log.connect()
    let name = log.names.stream
    try await RawClient(shard.cluster.port(of: 0)).request(
      "$JS.API.STREAM.UPDATE.\(name)",
      """
      {"name":"\(name)","description":"datavault log 1","subjects":["\(log.names.records)"],"retention":"limits",
      "discard":"new","storage":"file","num_replicas":1,"max_age":3600000000000,"max_msgs":-1,"max_bytes":-1,
      "max_consumers":-1,"max_msg_size":524288,"deny_delete":true,"duplicate_window":100000000}
      """)
    for log in [log, try shard.log()] {
      let error = #expect(throws: LogError.self) {
        try log.read(at: 0, mostBytes: 1 << 20, wait: .milliseconds(10))
      }
      #expect(error?.code == .foreignStream)
      log.close()
    }
  }

  @Test func `no client can delete single records of a stream`() async throws {
    let shard = try BrokerShard(Self.single)
    let log = try await shard.provisioned(replicas: 1)
    _ = try await bringThrough(1...3, log, shard)
    let answer = try await RawClient(shard.cluster.port(of: 0)).request(
      "$JS.API.STREAM.MSG.DELETE.\(log.names.stream)", "{\"seq\":2}")
    #expect(answer.contains("10057"))
    #expect(try log.all().prefix(3).map(\.sequence) == [1, 2, 3])
    log.close()
  }

  @Test func `a stream that begins behind the place shows its first record`() async throws {
    let shard = try BrokerShard(Self.single)
    let log = try await shard.provisioned(replicas: 1)
    _ = try await bringThrough(1...10, log, shard)
    try log.trim(through: 6)
    let other = try shard.log()
    let batch = try other.read(at: 0, mostBytes: 1 << 20, wait: .milliseconds(200))
    #expect(batch.first == 7 && batch.entries.first?.sequence == 7)
    log.close()
    other.close()
  }

  @Test func `a node that brokers refused for a while comes back by itself`() async throws {
    let keys = NodeKeys(from: .system)
    var options = Self.single
    options.users = [try keys.userKey().publicKey.text]
    let shard = try BrokerShard(options)
    let log = try await shard.provisioned(replicas: 1, user: try keys.userKey())
    let other = try NodeKeys(from: .system).userKey().publicKey.text
    try restart(shard) { $0.users = [other] }
    // libnats gives up for good when the same broker has refused twice.
    try await eventually("the node is refused") {
      do throws(LogError) {
        try log.connect()
        return false
      } catch { return error.code == .notPermitted }
    }
    try restart(shard) { $0.users = options.users }
    _ = try await bringThrough(1...3, log, shard)
    log.close()
  }

  private func restart(
    _ shard: BrokerShard, _ change: (inout BrokerCluster.Options) -> Void
  ) throws {
    shard.cluster.signal(0, SIGKILL)
    shard.cluster.configure(change)
    try shard.cluster.start(0)
  }

  @Test func `what a node is not permitted is told as that`() async throws {
    let keys = NodeKeys(from: .system)
    var options = Self.single
    options.users = [try keys.userKey().publicKey.text]
    let shard = try BrokerShard(options)
    _ = try await shard.provisioned(replicas: 1, user: try keys.userKey())
    try restart(shard) {
      $0.permissions = "{ publish: { deny: \"$JS.API.STREAM.INFO.>\" } }"
    }
    let log = try shard.log(user: keys.userKey())
    try await eventually("the broker refuses") {
      do throws(LogError) {
        try log.connect()
        return false
      } catch { return error.code == .notPermitted }
    }
    log.close()
  }

  @Test func `a broker without room refuses records, and takes them again when it has room`()
    async throws
  {
    var options = Self.single
    options.mostFileBytes = "1MB"
    let shard = try BrokerShard(options)
    let log = try await shard.provisioned(replicas: 1)
    try? log.append(try (1...8).map { try shard.record($0, byteCount: 300_000) })
    let full = try await log.all(3)
    #expect((3..<8).contains(full.count))
    try restart(shard) { $0.mostFileBytes = "100MB" }
    let entries = try await bringThrough(1...8, log, shard, byteCount: 300_000)
    #expect(Array(entries.prefix(full.count)) == full)
    log.close()
  }

  @Test func `a broker with another cipher key has no stream, and with the right one has it again`()
    async throws
  {
    var options = Self.single
    options.cipherKey = "right"
    let shard = try BrokerShard(options)
    let log = try await shard.provisioned(replicas: 1)
    let entries = try await bringThrough(1...50, log, shard)
    try restart(shard) { $0.cipherKey = "wrong" }
    try await eventually("the stream is missing") {
      do throws(LogError) {
        try log.connect()
        return false
      } catch { return error.code == .streamMissing }
    }
    #expect(throws: LogError.self) {
      try log.read(at: 50, mostBytes: 1 << 20, wait: .milliseconds(50))
    }
    #expect(throws: LogError.self) { try log.append([shard.record(51)]) }
    try restart(shard) { $0.cipherKey = "right" }
    try await eventually("the records are back") {
      guard let found = try? log.all() else { return false }
      return Array(found.prefix(entries.count)) == entries
    }
    log.close()
  }
}

/// Speaks the protocol of NATS as any other client of the brokers.
struct RawClient {
  private let socket: LoopbackSocket

  init(_ port: UInt16) throws { socket = try LoopbackSocket(connectedTo: port) }

  /// Sends a message and returns all that comes until its reply.
  @discardableResult
  func request(_ subject: String, _ body: String) async throws -> String {
    let socket = socket
    let text =
      "CONNECT {\"verbose\":false}\r\nSUB answer 1\r\nPUB \(subject) answer \(body.utf8.count)\r\n\(body)\r\n"
    return try await onBlockingThread("test.client") {
      _ = Array(text.utf8).withUnsafeBytes { send(socket.descriptor, $0.baseAddress, $0.count, 0) }
      var received = ""
      var piece = [UInt8](repeating: 0, count: 65_536)
      while !received.contains("}\r\n") || !received.contains("MSG answer") {
        let count = recv(socket.descriptor, &piece, piece.count, 0)
        try #require(count > 0, "the broker does not answer")
        received += String(decoding: piece[..<count], as: UTF8.self)
      }
      return received
    }
  }
}
