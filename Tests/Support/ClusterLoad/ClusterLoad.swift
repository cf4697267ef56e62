import BrokerCluster
import CNATS
import DataVault
import FileLayer
import Foundation
import JetStreamLog
import Logging
import MessagingQueue
import QueueReplication
import Replication
import Synchronization
import SystemPackage
import TestSupport
import VaultCrypto
import VaultedDatabase

/// Measures two nodes over three brokers beside their parts: a local commit, and the C client's acknowledgement.
///
/// `scripts/bench-cluster` builds it in a release build and prints its rows. Workloads alternate in rounds; a figure is
/// the median of the rounds.
@main
struct ClusterLoad {
  static let rounds = setting("BENCH_ROUNDS") ?? 5
  static let count = setting("BENCH_COUNT") ?? 200
  static let payload = [UInt8](repeating: 0x61, count: 1024)
  static let channel = try? Channel("orders")

  static func main() async throws {
    guard BrokerCluster.program != nil else { throw Failure(BrokerCluster.skipReason) }
    var options = BrokerCluster.Options()
    options.cipherKey = "benchmark"
    let brokers = try BrokerCluster(options)
    let folder = ScratchFolder()
    let first = try await Node.first(in: folder, brokers)
    let second = try await first.joined(in: folder)
    let alone = try await Node.alone(in: folder)
    let client = try CClient(brokers.addresses)
    try await warmUp(first, second, alone, client)

    var rows = Rows()
    for round in 1...rounds {
      print("round \(round) of \(rounds)", to: &standardError)
      let localTimes = try await times { try await alone.publish() }
      let local = localTimes.median
      let acknowledged = try await times { try client.publish(byteCount: recordByteCount) }.median
      let replicated = try await times { try await first.publish() }.median
      rows.add(
        "one publisher: replicated / (local commit + C client's ack)",
        replicated / (local + acknowledged))
      rows.add("  local commit, ms", local * 1000)
      rows.add("  C client's ack, ms", acknowledged * 1000)
      rows.add("  replicated, ms", replicated * 1000)
      let posted = try await times { try await first.post() }
      rows.add("one publisher: local on a cluster / local commit", posted.median / local)
      rows.add("  the same, means", posted.mean / localTimes.mean)
      let before = first.log.sizes
      let (ourTime, brokerTime) = (processorSeconds, brokers.processorSeconds)
      let parallel = try await duration { try await first.publishInParallel(64, each: count / 4) }
      let ourUsed = processorSeconds - ourTime
      let brokersUsed = brokers.processorSeconds - brokerTime
      let sizes = first.log.sizes.dropFirst(before.count)
      rows.add(
        "64 publishers: messages a record", Double(64 * (count / 4)) / Double(max(1, sizes.count)))
      let reference = try await duration { try client.publishAsync(Array(sizes)) }
      rows.add("64 publishers: C client's time / ours, the same records", reference / parallel)
      let messages = Double(64 * (count / 4))
      rows.add("  messages a second", messages / parallel)
      rows.add("  bytes of the log a message", Double(sizes.reduce(0, +)) / messages)
      rows.add("  processor time of one node a message, ms", ourUsed / 2 / messages * 1000)
      rows.add("  processor time of one broker a message, ms", brokersUsed / 3 / messages * 1000)
      rows.add("lag until the other node has it, ms", try await first.lag(to: second) * 1000)
    }
    rows.report()
    await second.stop()
    await first.stop()
    await alone.stop()
    client.close()
  }

  /// The bytes of a record with one message.
  static var recordByteCount: Int { payload.count + 150 }

  /// The processor time that this process has used, with both nodes, in seconds.
  private static var processorSeconds: Double {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
      + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
  }

  private static func warmUp(_ first: Node, _ second: Node, _ alone: Node, _ client: CClient)
    async throws
  {
    for _ in 0..<50 {
      _ = try await alone.publish()
      _ = try await first.publish()
      try client.publish(byteCount: recordByteCount)
    }
  }

  /// How long each of the calls takes, in seconds.
  private static func times(_ body: () async throws -> Void) async throws -> [Double] {
    var times: [Double] = []
    for _ in 0..<count { times.append(try await duration(body)) }
    return times
  }

  /// How long a call takes, in seconds.
  private static func duration(_ body: () async throws -> Void) async throws -> Double {
    let start = ContinuousClock.now
    try await body()
    return (ContinuousClock.now - start) / .seconds(1)
  }
}

extension [Double] {
  fileprivate var median: Double { sorted()[count / 2] }
  fileprivate var mean: Double { reduce(0, +) / Double(count) }
}

struct Failure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

nonisolated(unsafe) private var standardError = StandardErrorStream()

private struct StandardErrorStream: TextOutputStream {
  mutating func write(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }
}

/// The rows of the table, each with a value a round.
private struct Rows {
  private static let goals: [(String, @Sendable (Double) -> Bool, String)] = [
    ("one publisher: replicated /", { $0 <= 1.2 }, "at most 1.2"),
    ("one publisher: local on a cluster", { $0 <= 1.1 }, "at most 1.1"),
    ("64 publishers: C client's time", { $0 >= 0.8 }, "at least 0.8"),
  ]
  private var names: [String] = []
  private var values: [String: [Double]] = [:]

  mutating func add(_ name: String, _ value: Double) {
    if values[name] == nil { names.append(name) }
    values[name, default: []].append(value)
  }

  func report() {
    for name in names {
      let sorted = (values[name] ?? []).sorted()
      let value = sorted.median
      var row =
        name.padding(toLength: 66, withPad: " ", startingAt: 0) + String(format: "%10.2f", value)
      row += String(format: "  (%.2f to %.2f)", sorted[0], sorted[sorted.count - 1])
      if let goal = Self.goals.first(where: { name.hasPrefix($0.0) }) {
        row += "  goal \(goal.2): \(goal.1(value) ? "met" : "missed")"
      }
      print(row)
    }
  }
}

/// A log that notes the sizes of what is appended.
final class MeasuredLog: ReplicatedLog {
  let log: JetStreamLog
  private let state = Mutex<[Int]>([])

  init(_ log: JetStreamLog) { self.log = log }

  var sizes: [Int] { state.withLock(\.self) }

  func append(_ records: [SealedRecord]) throws {
    state.withLock { $0 += records.map(\.bytes.count) }
    try log.append(records)
  }

  func read(at place: UInt64, mostBytes: Int, wait: Duration) throws -> Applier.Batch {
    try log.read(at: place, mostBytes: mostBytes, wait: wait)
  }

  func trim(through position: UInt64) throws { try log.trim(through: position) }
}

/// An encrypted home with its engine, alone or as a member.
final class Node: Sendable {
  let engine: MessagingEngine
  let log: MeasuredLog
  private let home: DataVaultHome
  private let vault: Vault
  private let running: Task<Void, any Error>?

  private init(
    _ engine: MessagingEngine, _ home: DataVaultHome, _ vault: Vault, _ log: MeasuredLog,
    _ running: Task<Void, any Error>?
  ) {
    self.engine = engine
    self.home = home
    self.vault = vault
    self.log = log
    self.running = running
  }

  private static func makeHome(
    _ name: String, in folder: ScratchFolder
  ) async throws -> (DataVaultHome, Vault) {
    let home = DataVaultHome(FilePath(folder.path(name)))
    let vault = try await Vault.create(.messaging, in: home.store, credentials: .standard)
    return (home, vault)
  }

  private static func makeLog(_ vault: Vault) async throws -> MeasuredLog {
    let cluster = try await NodeVault(vault).cluster()
    return MeasuredLog(
      try JetStreamLog(
        BrokerSettings(addresses: cluster.settings.addresses), ring: cluster.ring, user: nil,
        now: { SystemTimeSource.sinceBoot }, logger: quiet))
  }

  private static let quiet = Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() }

  static func alone(in folder: ScratchFolder) async throws -> Node {
    let (home, vault) = try await makeHome("alone", in: folder)
    let engine = try await start(home, vault)
    let ring = KeyRing(newShard: .system)
    let log = try JetStreamLog(
      BrokerSettings(addresses: ["nats://127.0.0.1:1"]), ring: ring, user: nil,
      now: { .zero }, logger: quiet)
    return Node(engine, home, vault, MeasuredLog(log), nil)
  }

  private static func start(_ home: DataVaultHome, _ vault: Vault) async throws -> MessagingEngine {
    var configuration = EngineConfiguration()
    configuration.logger = quiet
    return try await MessagingEngine.start(home, vault: vault, configuration: configuration)
  }

  /// The first member of a new cluster.
  static func first(in folder: ScratchFolder, _ brokers: BrokerCluster) async throws -> Node {
    let (home, vault) = try await makeHome("first", in: folder)
    let engine = try await start(home, vault)
    var settings = ClusterSettings(addresses: brokers.addresses)
    settings.syncSeconds = 1
    let cluster = try await Membership.prepareFirst(engine, vault: vault, settings: settings)
    let log = try await makeLog(vault)
    try await eventually("the brokers make the stream\n\(brokers.complaints)") {
      (try? log.log.provision(replicas: 3)) != nil
    }
    try await Membership.makeFirst(engine, vault: vault, shard: cluster.ring.shard)
    try await vault.set(SecretBytes(zeroCount: 32), kind: .binary, for: "shared")
    try await engine.stop()
    return try await run(home, vault, log)
  }

  private static func run(_ home: DataVaultHome, _ vault: Vault, _ log: MeasuredLog) async throws
    -> Node
  {
    let engine = try await start(home, vault)
    var configuration = NodeConfiguration()
    configuration.logger = quiet
    let member = try await MemberNode.start(
      engine, of: home, vault: vault, configuration: configuration, time: SystemTimeSource()
    ) { _, _ in MemberNode.Connection(log: log, members: log.log, close: { log.log.close() }) }
    return Node(engine, home, vault, log, Task { try await member.run() })
  }

  /// Another member, invited by this one.
  func joined(in folder: ScratchFolder) async throws -> Node {
    let (other, otherVault) = try await Self.makeHome("second", in: folder)
    let keys = try await NodeVault(otherVault).keys()
    let request = try JoinRequest(member: keys.member(), keys: keys)
    let (bytes, confirmed) = (request.bytes, try request.fingerprint())
    let command = try await Self.start(home, vault)
    let writer = try await OutboxWriter.attach(to: command, of: home, vault: vault)
    let copy = FilePath(folder.path("copy.db"))
    let invitation = try await Membership.invite(
      bytes, confirmed: confirmed, by: writer, of: home, vault: vault, sharing: "shared",
      copyingTo: copy)
    try await command.stop()
    let engine = try await Self.start(other, otherVault)
    try await Membership.join(
      invitation.bytes, confirmed: invitation.fingerprint, copy: copy, engine, vault: otherVault,
      sharing: "shared")
    try await engine.stop()
    return try await Self.run(other, otherVault, Self.makeLog(otherVault))
  }

  private func message() throws -> Message {
    guard let channel = ClusterLoad.channel else { throw Failure("a channel's name") }
    return Message(channel: channel, payload: ClusterLoad.payload)
  }

  @discardableResult
  func publish() async throws -> Timetoken { try await engine.publish(message()) }

  func post() async throws { try await engine.post([message()]) }

  func publishInParallel(_ publishers: Int, each count: Int) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<publishers {
        group.addTask { for _ in 0..<count { try await self.publish() } }
      }
      try await group.waitForAll()
    }
  }

  /// The median time from the acknowledgement here until another node has the message, in seconds.
  func lag(to other: Node) async throws -> Double {
    var times: [Double] = []
    for _ in 0..<50 {
      let place = try await publish()
      let start = ContinuousClock.now
      while try await other.engine.logEnd() < place {}
      times.append((ContinuousClock.now - start) / .seconds(1))
    }
    return times.median
  }

  func stop() async {
    running?.cancel()
    _ = await running?.result
    try? await engine.stop()
  }
}

/// The C client of NATS, publishing to a stream of its own.
final class CClient {
  private var connection: OpaquePointer?
  private var context: OpaquePointer?

  init(_ addresses: [String]) throws {
    var options: OpaquePointer?
    try check(natsOptions_Create(&options))
    defer { natsOptions_Destroy(options) }
    try check(natsOptions_SetURL(options, addresses[0]))
    try check(natsOptions_SetSendAsap(options, true))
    try check(natsConnection_Connect(&connection, options))
    var jetStream = jsOptions()
    jsOptions_Init(&jetStream)
    jetStream.PublishAsync.MaxPending = 256
    try check(natsConnection_JetStream(&context, connection, &jetStream))
    var subjects: [UnsafePointer<CChar>?] = [UnsafePointer(strdup("bench.r"))]
    try subjects.withUnsafeMutableBufferPointer { subjects in
      var configuration = jsStreamConfig()
      jsStreamConfig_Init(&configuration)
      configuration.Name = UnsafePointer(strdup("bench"))
      configuration.Subjects = subjects.baseAddress
      configuration.SubjectsLen = 1
      configuration.Storage = js_FileStorage
      configuration.Replicas = 3
      try check(js_AddStream(nil, context, &configuration, nil, nil))
    }
  }

  private func check(_ status: natsStatus) throws {
    guard status == NATS_OK else { throw Failure(String(cString: natsStatus_GetText(status))) }
  }

  /// Publishes, and waits for the acknowledgement.
  func publish(byteCount: Int) throws {
    let bytes = [UInt8](repeating: 0x61, count: byteCount)
    var acknowledgement: UnsafeMutablePointer<jsPubAck>?
    try check(
      js_Publish(&acknowledgement, context, "bench.r", bytes, Int32(bytes.count), nil, nil))
    jsPubAck_Destroy(acknowledgement)
  }

  /// Publishes messages of these sizes, and waits for all acknowledgements.
  func publishAsync(_ sizes: [Int]) throws {
    for size in sizes {
      let bytes = [UInt8](repeating: 0x61, count: size)
      try check(js_PublishAsync(context, "bench.r", bytes, Int32(size), nil))
    }
    try check(js_PublishAsyncComplete(context, nil))
  }

  func close() {
    jsCtx_Destroy(context)
    natsConnection_Destroy(connection)
  }
}
