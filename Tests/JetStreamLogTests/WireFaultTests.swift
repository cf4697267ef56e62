import BrokerCluster
import Foundation
import JetStreamLog
import MessagingQueue
import QueueReplication
import Synchronization
import TestSupport
import Testing

/// What a network does to single messages between a node and its broker.
enum WireFault: String, CaseIterable, Sendable {
  case drop, `repeat`, reorder, changeSent, changeReceived, replaySent, replayReceived

  /// Whether it can show a node something that the log does not have, which the digests tell.
  var deceivesNode: Bool { self == .changeReceived || self == .replayReceived }
}

/// A network that is right at first, and then does one thing wrong with some messages.
private final class FaultyNetwork: Sendable {
  private struct State: Sendable {
    var random: SeededRandom
    var isFaulty = false
    var faultCount = 0
    var held: [WireMessage.Direction: WireMessage] = [:]
    /// What passed before the first fault.
    var earlier: [WireMessage] = []
  }

  private let fault: WireFault
  private let state: Mutex<State>

  init(_ fault: WireFault, seed: UInt64) {
    self.fault = fault
    state = Mutex(State(random: SeededRandom(seed: seed)))
  }

  func setFaulty(_ isFaulty: Bool) { state.withLock { $0.isFaulty = isFaulty } }

  var faultCount: Int { state.withLock(\.faultCount) }

  /// What goes on in the place of a message.
  func pass(_ message: WireMessage) -> [WireMessage] {
    guard message.content != nil else { return [message] }
    return state.withLock { state in
      let held = [state.held.removeValue(forKey: message.direction)].compactMap(\.self)
      guard state.isFaulty else {
        if state.earlier.count < 2_000 { state.earlier.append(message) }
        return [message] + held
      }
      guard state.random.oneIn(6), let changed = change(message, &state) else {
        return [message] + held
      }
      state.faultCount += 1
      return changed + held
    }
  }

  private func change(_ message: WireMessage, _ state: inout State) -> [WireMessage]? {
    let isSent = message.direction == .toBroker
    switch fault {
    case .drop: return []
    case .repeat: return [message, message]
    case .reorder:
      state.held[message.direction] = message
      return []
    case .changeSent where isSent, .changeReceived where !isSent:
      return [message.changing(bit: state.random.next(1 << 20))]
    case .replaySent where isSent:
      return earlier(than: message, &state).map { [message, $0] }
    case .replayReceived where !isSent:
      guard let old = earlier(than: message, &state) else { return nil }
      // As it was, or in the place of what the node waits for.
      return state.random.oneIn(2) ? [message, old] : message.carrying(old).map { [$0] }
    default: return nil
    }
  }

  /// A message of the same kind from before the first fault.
  private func earlier(than message: WireMessage, _ state: inout State) -> WireMessage? {
    func kind(_ message: WireMessage) -> [String] {
      let tokens = message.subject.split(separator: ".")
      return [message.operation, "\(tokens.count)", tokens.last == "r" ? "record" : "other"]
    }
    let found = state.earlier.filter {
      $0.direction == message.direction && kind($0) == kind(message)
    }
    return found.isEmpty ? nil : found[state.random.next(found.count)]
  }
}

/// Two nodes, each behind a network of its own, at one broker.
@Suite(
  .enabled(if: BrokerCluster.program != nil, Comment(rawValue: BrokerCluster.skipReason)),
  .timeLimit(.minutes(10)))
struct WireFaultTests {
  private let folder = ScratchFolder()

  private static func shard() throws -> BrokerShard {
    var options = BrokerCluster.Options()
    options.count = 1
    return try BrokerShard(options)
  }

  /// Publishes each text once on each node: for workers, and on a channel that keeps it.
  private func publish(
    _ name: String, _ count: Int, on nodes: [ClusterNode], _ witness: Witness
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (index, node) in nodes.enumerated() {
        group.addTask {
          for number in 0..<count {
            let text = "\(name)\(index)-\(number)"
            let messages = try ["orders": text, "kept": "kept \(text)"].map {
              Message(channel: try Channel($0), payload: Array($1.utf8))
            }
            if (try? await node.engine.publish(messages)) != nil {
              witness.state.withLock { $0.acknowledged.append(text) }
            }
            // Publications come one after the other, not in one record.
            try await Task.sleep(for: .milliseconds(20))
          }
        }
      }
      try await group.waitForAll()
    }
  }

  private func startWorkers(on nodes: [ClusterNode], _ witness: Witness) -> Task<Void, Never> {
    Task {
      await withTaskGroup(of: Void.self) { group in
        for node in nodes { group.addTask { try? await node.work(witness) } }
      }
    }
  }

  /// Publishes, and waits until workers at both nodes have done it all.
  private func work(
    on nodes: [ClusterNode], _ name: String, _ count: Int, _ witness: Witness
  ) async throws {
    let workers = startWorkers(on: nodes, witness)
    try await publish(name, count, on: nodes, witness)
    try await eventually("all work is done") {
      witness.state.withLock { Set($0.acknowledged) == $0.done }
    }
    workers.cancel()
    await workers.value
  }

  @Test(arguments: WireFault.allCases)
  func `faults with single messages do no harm, or stop the node that they deceive`(
    fault: WireFault
  ) async throws {
    let seed = setting("DATAVAULT_WIRE_SEED") ?? UInt64(1)
    let shard = try Self.shard()
    let direct = try await shard.provisioned(replicas: 1)
    let networks = (0..<2).map { FaultyNetwork(fault, seed: 2 * seed + $0) }
    let proxies = try networks.map { network in
      try BrokerProxy(to: shard.cluster.port(of: 0)) { network.pass($0) }
    }
    func start(_ index: Int) async throws -> ClusterNode {
      try await ClusterNode(
        shard, member: UInt128(index + 1), at: folder.path("\(index).db"),
        addresses: [proxies[index].address])
    }
    let witness = Witness()
    let yesterday = [try await start(0), try await start(1)]
    try await work(on: yesterday, "early", 10, witness)
    // What passed so far is of an earlier process of one node, and of the same process of the other.
    await yesterday[1].stop()
    let nodes = [yesterday[0], try await start(1)]

    for network in networks { network.setFaulty(true) }
    let faults = Task {
      // Faults last for a while, and on a loaded machine until there are some.
      try await Task.sleep(for: .seconds(3))
      try await eventually("faults") { networks.map(\.faultCount).reduce(0, +) > 2 }
      for network in networks { network.setFaulty(false) }
    }
    let workers = startWorkers(on: nodes, witness)
    try await publish("late", 30, on: nodes, witness)
    try await faults.value
    #expect(networks.map(\.faultCount).reduce(0, +) > 2)
    let known = witness.state.withLock { Set($0.acknowledged) }
    var alarms: [ReplicationError] = []
    try await eventually("all work is done, or a node has stopped") {
      alarms = nodes.compactMap(\.alarm)
      if !alarms.isEmpty { return true }
      guard witness.state.withLock({ known.isSubset(of: $0.done) }) else { return false }
      return try await nodes[0].rows() == nodes[1].rows()
    }
    workers.cancel()
    await workers.value
    let kept = try await nodes[0].texts().filter { $0.hasPrefix("kept ") }
    if alarms.isEmpty {
      try await expectEqual(nodes[0], nodes[1])
      #expect(Set(kept).count == kept.count)
      #expect(known.isSubset(of: kept.map { String($0.dropFirst(5)) }))
      #expect(witness.state.withLock(\.deliveredAfterDone).isEmpty)
      for name in ["early0", "early1", "late0", "late1"] {
        let numbers = kept.filter { $0.hasPrefix("kept \(name)-") }
          .compactMap { Int($0.drop { $0 != "-" }.dropFirst()) }
        #expect(numbers == numbers.sorted(), "\(name)")
      }
    } else {
      #expect(fault.deceivesNode, "\(alarms)")
      #expect(alarms.allSatisfy { $0.hint != nil })
    }
    for node in nodes { await node.stop() }
    direct.close()
  }

  /// A node behind a network that puts something else in the place of one record of a batch.
  ///
  /// - Parameter check: returns false to have it deceived again: a node that reads at the leader at that time is not.
  private func deceive(
    _ body: @escaping @Sendable (WireMessage, _ earlier: WireMessage) -> WireMessage,
    _ check: (_ deceived: ClusterNode, _ other: ClusterNode, _ isSent: () -> Bool) async throws ->
      Bool
  ) async throws {
    let shard = try Self.shard()
    let direct = try await shard.provisioned(replicas: 1)
    let witness = Witness()
    let left = Mutex<(count: Int?, first: WireMessage?)>((nil, nil))
    let proxy = try BrokerProxy(to: shard.cluster.port(of: 0)) {
      [subject = direct.names.records] message in
      guard message.direction == .toNode, message.subject == subject else { return [message] }
      return left.withLock { left in
        left.count = left.count.map { $0 - 1 }
        let first = left.first ?? message
        left.first = first
        return [left.count == 0 ? body(message, first) : message]
      }
    }
    let other = try await ClusterNode(shard, member: 1, at: folder.path("a.db"))
    let deceived = try await ClusterNode(
      shard, member: 2, at: folder.path("b.db"), addresses: [proxy.address])
    try await publish("early", 5, on: [other], witness)
    try await expectEqual(other, deceived)
    // Others follow in the same batch: the node does not notice it by the last record.
    var isDone = false
    for round in 0..<8 where !isDone {
      proxy.hold(true)
      try await publish("late\(round)-", 30, on: [other], witness)
      left.withLock { $0.count = 10 }
      proxy.hold(false)
      isDone = try await check(deceived, other) { left.withLock { ($0.count ?? 10) <= 0 } }
    }
    #expect(isDone)
    #expect(left.withLock { $0.count ?? 10 } <= 0)
    for node in [deceived, other] { await node.stop() }
    direct.close()
  }

  @Test func `a record that was changed on its way to one node is read again`() async throws {
    try await deceive { message, _ in
      message.changing(bit: 8_000)
    } _: { deceived, other, isSent in
      try await eventually("the changed record is sent") { isSent() }
      // What is published now is behind it.
      try await other.publish(["behind it"], Witness())
      try await expectEqual(deceived, other)
      #expect(try await deceived.texts().contains("kept late0-0-29"))
      #expect(deceived.alarm == nil && other.alarm == nil)
      return true
    }
  }

  @Test func `an earlier record in the place of another is told by the digests`() async throws {
    try await deceive { message, earlier in
      message.carrying(earlier) ?? message
    } _: { deceived, other, _ in
      // A node that was not deceived does not stop.
      let end = ContinuousClock.now + .seconds(5)
      try await eventually {
        deceived.alarm != nil || other.alarm != nil || ContinuousClock.now > end
      }
      guard let alarm = deceived.alarm ?? other.alarm else { return false }
      #expect(alarm.code == .alarm && alarm.hint != nil, "\(alarm)")
      return true
    }
  }
}
