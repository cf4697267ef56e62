import BrokerCluster
import FileLayer
import Foundation
import JetStreamLog
import Replication
import TestSupport
import Testing

/// Brokers that are killed, stopped, and come back with less.
@Suite(
  .enabled(if: BrokerCluster.program != nil, Comment(rawValue: BrokerCluster.skipReason)),
  .serialized)
struct BrokerFaultTests {
  /// Appends numbered records until all were read back, as a relay does.
  private func appendAll(
    _ numbers: ClosedRange<UInt64>, to log: JetStreamLog, of shard: BrokerShard,
    during fault: @escaping @Sendable () async throws -> Void
  ) async throws {
    let breaking = Task { try await fault() }
    var entries: [LogEntry] = []
    var next = numbers.lowerBound
    try await eventually("all records are read back") {
      do {
        try log.append(try (next...min(next + 20, numbers.upperBound)).map { try shard.record($0) })
        let place = entries.last?.sequence ?? 0
        let batch = try await onBlockingThread("test.read") {
          try log.read(at: place, mostBytes: 1 << 20, wait: .milliseconds(200))
        }
        if place > 0, let first = batch.entries.first, first.sequence == place {
          #expect(first.record == entries.last?.record)
        }
        for entry in batch.entries where entry.sequence > (entries.last?.sequence ?? 0) {
          entries.append(entry)
          // What comes twice or too early counts for nothing, as the applier decides.
          if entry.record.name.number == next { next += 1 }
        }
      } catch {
        // The brokers are down for a while.
      }
      return next > numbers.upperBound
    }
    try await breaking.value
    // Nothing that was read has changed.
    try await eventually("the whole log can be read") {
      let all = try? await onBlockingThread("test.read") { try log.all() }
      return all.map { Array($0.prefix(entries.count)) == entries } ?? false
    }
  }

  private func leader(of log: JetStreamLog, in cluster: BrokerCluster) throws -> Int {
    let name = try log.status().leader
    return (0..<3).first { cluster.name(of: $0) == name } ?? 0
  }

  @Test func `records that were read survive the leader, and then all brokers`() async throws {
    let shard = try BrokerShard()
    let log = try await shard.provisioned(replicas: 3)
    let cluster = shard.cluster
    let leader = try leader(of: log, in: cluster)
    try await appendAll(1...400, to: log, of: shard) {
      // The kill comes between appends.
      try await Task.sleep(for: .milliseconds(100))
      cluster.signal(leader, SIGKILL)
      // Another broker leads for a while.
      try await Task.sleep(for: .seconds(1))
      try cluster.start(leader)
    }
    try await appendAll(401...600, to: log, of: shard) {
      for index in 0..<3 { cluster.signal(index, SIGKILL) }
      for index in 0..<3 { try cluster.start(index) }
    }
    log.close()
  }

  @Test func `a leader that stops without a word is left`() async throws {
    let shard = try BrokerShard()
    let log = try await shard.provisioned(replicas: 3)
    let cluster = shard.cluster
    let leader = try leader(of: log, in: cluster)
    try await appendAll(1...200, to: log, of: shard) {
      cluster.signal(leader, SIGSTOP)
      // Longer than brokers and nodes wait for a word.
      try await Task.sleep(for: .seconds(8))
      cluster.signal(leader, SIGCONT)
    }
    log.close()
  }

  @Test func `a leader that hears no majority is not believed`() async throws {
    let shard = try BrokerShard()
    let log = try await shard.provisioned(replicas: 3)
    let cluster = shard.cluster
    let leader = try leader(of: log, in: cluster)
    // Over the leader itself, which does not know for ten seconds that it has lost the others.
    let node = try shard.log { $0.addresses = [cluster.addresses[leader]] }
    try node.append([shard.record(1)])
    #expect(try await node.all(1).count == 1)
    for index in 0..<3 where index != leader { cluster.signal(index, SIGKILL) }
    try await eventually("the leader is not believed") {
      do {
        _ = try await onBlockingThread("test.read") {
          try node.read(at: 1, mostBytes: 1 << 20, wait: .milliseconds(10))
        }
        return false
      } catch let error as LogError {
        return error.message.contains("majority")
      }
    }
    for index in 0..<3 where index != leader { try cluster.start(index) }
    try await eventually("the log is readable again") {
      (try? node.read(at: 1, mostBytes: 1 << 20, wait: .milliseconds(10)).last) == 1
    }
    node.close()
    log.close()
  }

  @Test func `a broker that comes back with an older store shows another record at a place`()
    async throws
  {
    var options = BrokerCluster.Options()
    options.count = 1
    let shard = try BrokerShard(options)
    let cluster = shard.cluster
    let log = try await shard.provisioned(replicas: 1)
    try log.append(try (1...10).map { try shard.record($0) })
    #expect(try await log.all(10).count == 10)
    cluster.signal(0, SIGKILL)
    let older = cluster.store(of: 0) + "-older"
    try FileManager.default.copyItem(atPath: cluster.store(of: 0), toPath: older)
    try cluster.start(0)
    try await eventually("the broker answers") { (try? log.append([shard.record(11)])) != nil }
    try await eventually("the record is there") { (try? log.all(from: 10).count) == 1 }
    cluster.signal(0, SIGKILL)
    try FileManager.default.removeItem(atPath: cluster.store(of: 0))
    try FileManager.default.moveItem(atPath: older, toPath: cluster.store(of: 0))
    try cluster.start(0)
    // The end is forgotten: the stream is shorter than what was read.
    try await eventually("the broker answers") {
      (try? log.read(at: 11, mostBytes: 1 << 20, wait: .milliseconds(50)).last) == 10
    }
    try log.append([try shard.record(12)])
    try await eventually("another record has the place") {
      let batch = try? log.read(at: 11, mostBytes: 1 << 20, wait: .milliseconds(50))
      return batch?.entries.first?.record == (try shard.record(12))
    }
    log.close()
  }
}
