import BrokerCluster
import FileLayer
import Foundation
import GRDB
import JetStreamLog
import MessagingQueue
import QueueReplication
import Replication
import Synchronization
import TestSupport
import Testing
import VaultCrypto

@Suite(
  .enabled(if: BrokerCluster.program != nil, Comment(rawValue: BrokerCluster.skipReason)),
  .serialized)
struct ClusterTests {
  private let folder = ScratchFolder()

  @Test(.timeLimit(.minutes(10)))
  func `nothing acknowledged is lost while brokers are killed, and a node starts again`()
    async throws
  {
    let shard = try BrokerShard()
    let cluster = shard.cluster
    let operatorLog = try await shard.provisioned(replicas: 3)
    let witness = Witness()
    let a = try await ClusterNode(shard, member: 1, at: folder.path("a.db"))
    let b = try await ClusterNode(shard, member: 2, at: folder.path("b.db"))
    let texts = (0..<4).map { publisher in (0..<60).map { "\(publisher)-\($0)" } }

    let workers = Task {
      await withTaskGroup(of: Void.self) { group in
        for node in [a, b] { group.addTask { try? await node.work(witness) } }
      }
    }
    let publishers = Task {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (number, list) in texts.enumerated() {
          group.addTask {
            for part in stride(from: 0, to: list.count, by: 10) {
              try await (number % 2 == 0 ? a : b).publish(
                Array(list[part..<min(part + 10, list.count)]), key: number < 2 ? "\(number)" : nil,
                isLocal: number == 3, witness)
              // Publications last until all brokers are killed.
              try await Task.sleep(for: .milliseconds(300))
            }
          }
        }
        try await group.waitForAll()
      }
    }
    // The kill comes while all work.
    try await Task.sleep(for: .seconds(1))
    let leader = try operatorLog.status().leader
    let killed = (0..<3).first { cluster.name(of: $0) == leader } ?? 0
    cluster.signal(killed, SIGKILL)
    // Another broker leads for a while.
    try await Task.sleep(for: .seconds(1))
    try cluster.start(killed)
    // The other kills come while all work again.
    try await Task.sleep(for: .seconds(6))
    for index in 0..<3 { cluster.signal(index, SIGKILL) }
    for index in 0..<3 { try cluster.start(index) }
    try await publishers.value

    let all = texts.flatMap(\.self)
    var undone: Set<String> = []
    try await eventually("all work is done: \(undone)\n\(a)\n\(b)") {
      undone = witness.state.withLock { Set(all).subtracting($0.done) }
      return undone.isEmpty
    }
    workers.cancel()
    await workers.value
    try await expectEqual(a, b)
    let known = witness.state.withLock(\.self)
    #expect(Set(known.acknowledged) == Set(all) && known.places.count == all.count - 60)
    // One message of an ordering key comes after the other, at whatever node.
    for key in 0..<2 {
      #expect(known.firstSeen.filter { $0.hasPrefix("\(key)-") } == texts[key])
    }
    #expect(known.deliveredAfterDone.isEmpty)

    // Another process of a member begins where the first one ended.
    await b.stop()
    try await a.publish(["last, and confidential"], witness)
    let again = try await ClusterNode(shard, member: 2, at: folder.path("b.db"))
    try await expectEqual(a, again)
    #expect(try await again.texts().last == "last, and confidential")
    await again.stop()
    await a.stop()
    operatorLog.close()
  }
}
