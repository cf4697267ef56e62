import DataVault
import DataVaultTesting
import Foundation
import GRDB
import Logging
import MessagingQueue
import MessagingQueueLifecycle
import MetricsTestKit
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing
import VaultedDatabase

/// Workers on an engine, in a real `ServiceGroup`.
@Suite struct WorkerServiceTests {
  private let folder = ScratchFolder()
  private let home: DataVaultHome
  private let store = InMemoryVaultStore()
  private let channel: Channel
  private let log = Log()

  init() throws {
    home = DataVaultHome(folder("home"), store: store, vaultParameters: .cheap)
    channel = try Channel("jobs")
  }

  /// What the handlers note.
  private final class Log: Sendable {
    private let entries = Mutex<[String]>([])
    var all: [String] { entries.withLock { $0 } }
    func note(_ text: String) { entries.withLock { $0.append(text) } }

    /// Waits until `count` entries contain `text`.
    func wait(for text: String, _ count: Int = 1) async throws {
      try await eventually("\(text) is noted \(count) times: \(all)") {
        all.count { $0.contains(text) } >= count
      }
    }
  }

  private func makeVault() async throws -> Vault {
    try await FastTestVault.create(.messaging, in: store, credentials: credentials("long secret"))
  }

  /// Runs workers in a group, with the engine's service before them.
  private func withGroup(
    _ workers: [Worker], _ vault: Vault, unlockTimeout: Duration = .zero,
    _ change: (inout WorkerConfiguration) -> Void = { _ in },
    _ body: (ServiceGroup, MessagingService, WorkerService) async throws -> Void
  ) async throws {
    var engineConfiguration = EngineConfiguration()
    engineConfiguration.unlockTimeout = unlockTimeout
    let messages = MessagingService(home, vault: vault, configuration: engineConfiguration)
    var configuration = WorkerConfiguration()
    change(&configuration)
    let service = WorkerService(messages, workers, configuration: configuration)
    let group = ServiceGroup(
      services: [messages, service], logger: Logger(label: "t") { _ in SwiftLogNoOpLogHandler() })
    async let running: Void = group.run()
    do {
      try await body(group, messages, service)
    } catch {
      await group.triggerGracefulShutdown()
      try? await running
      throw error
    }
    await group.triggerGracefulShutdown()
    try await running
  }

  private func publish(_ texts: [String], _ messages: MessagingService) async throws {
    _ = try await messages.engine().publish(
      texts.map { Message(channel: channel, .text($0)) })
  }

  /// An engine on the same home, after the group has ended.
  private func after(
    _ vault: Vault, _ body: (MessagingEngine) async throws -> Void
  ) async throws {
    let engine = try await MessagingEngine.start(home, vault: vault)
    try await body(engine)
    try await engine.stop()
  }

  @Test func `jobs are handled, acknowledged, retried and rejected, and deaths are reported`()
    async throws
  {
    let (vault, log) = (try await makeVault(), log)
    let metrics = TestMetrics()
    let worker = Worker(channel, maximumAttempts: 2) { job in
      let text = job.delivery.string ?? ""
      log.note("\(text) \(job.delivery.attempt)")
      switch text {
      case "twice" where job.delivery.attempt == 1: throw JobFailure.retry(after: .zero)
      case "never": throw JobFailure.retry(after: .zero, reason: "no luck")
      case "bad": throw JobFailure.reject(reason: "not a job")
      default: return
      }
    }
    try await withGroup([worker], vault) {
      $0.metricsFactory = metrics
      $0.channelMetrics = .all()
      $0.onDeath = { delivery, reason in log.note("death of \(delivery.string ?? ""): \(reason)") }
    } _: { _, messages, _ in
      try await publish(["once", "twice", "never", "bad"], messages)
      try await log.wait(for: "death", 2)
      try await log.wait(for: "twice 2")
    }
    #expect(log.all.count(where: { $0.hasPrefix("once") }) == 1)
    #expect(Set(log.all.filter { $0.hasPrefix("never") }) == ["never 1", "never 2"])
    #expect(log.all.contains("death of never: no luck"))
    #expect(log.all.contains("death of bad: not a job"))
    for (result, count) in [("acknowledged", 2), ("retried", 2), ("rejected", 1), ("exhausted", 1)]
    {
      let total = try metrics.expectCounter("datavault_jobs_total", [("result", result)])
      #expect(total.totalValue == count, "\(result)")
      let own = try metrics.expectCounter(
        "datavault_channel_jobs_total", [("channel", "jobs"), ("result", result)])
      #expect(own.totalValue == count, "\(result)")
    }
    try await after(vault) { engine in
      let dead = try await engine.deadLetters(of: channel)
      #expect(Set(dead.map(\.reason)) == ["no luck", "not a job"])
      #expect(try await engine.receive(from: channel, maximumCount: 9).isEmpty)
    }
  }

  @Test func `complete() commits the handler's rows with the acknowledgement`() async throws {
    let (vault, log) = (try await makeVault(), log)
    let worker = Worker(channel) { job in
      let text = job.delivery.string ?? ""
      try await job.complete { db in
        try db.execute(sql: "CREATE TABLE IF NOT EXISTS mine (text)")
        try db.execute(sql: "INSERT INTO mine VALUES (?)", arguments: [text])
        if text == "undone", job.delivery.attempt == 1 { throw JobFailure.reject(reason: "undone") }
      }
      log.note("done \(text)")
      // An error after it changes nothing.
      throw JobFailure.reject(reason: "late")
    }
    try await withGroup([worker], vault) {
      $0.onDeath = { delivery, _ in log.note("death of \(delivery.string ?? "")") }
    } _: { _, messages, _ in
      try await publish(["kept", "undone"], messages)
      try await log.wait(for: "done kept")
      try await log.wait(for: "death of undone")
    }
    try await after(vault) { engine in
      let texts = try await engine.read { try String.fetchAll($0, sql: "SELECT text FROM mine") }
      #expect(texts == ["kept"])
      #expect(try await engine.deadLetters(of: channel).map(\.string) == ["undone"])
    }
  }

  @Test func `reject() commits the handler's rows with the dead letter, and reports the death`()
    async throws
  {
    let (vault, log) = (try await makeVault(), log)
    let worker = Worker(channel, maximumAttempts: 1) { job in
      let text = job.delivery.string ?? ""
      try await job.reject(reason: "refused \(text)") { db in
        try db.execute(sql: "CREATE TABLE IF NOT EXISTS mine (text)")
        try db.execute(sql: "INSERT INTO mine VALUES (?)", arguments: [text])
        if text == "undone" { throw JobFailure.retry(reason: "undone") }
      }
    }
    try await withGroup([worker], vault) {
      $0.onDeath = { delivery, reason in log.note("\(delivery.string ?? ""): \(reason)") }
    } _: { _, messages, _ in
      try await publish(["kept", "undone"], messages)
      try await log.wait(for: "kept: refused kept")
      try await log.wait(for: "undone: undone")
    }
    try await after(vault) { engine in
      let texts = try await engine.read { try String.fetchAll($0, sql: "SELECT text FROM mine") }
      #expect(texts == ["kept"])
      let dead = try await engine.deadLetters(of: channel)
      #expect(Set(dead.map(\.reason)) == ["refused kept", "undone"])
    }
  }

  @Test(arguments: [Duration.zero, .milliseconds(99), .seconds(367 * 86_400)])
  func `a lease out of range ends the service with invalidArgument`(lease: Duration) async throws {
    let vault = try await makeVault()
    let error = await #expect(throws: EngineError.self) {
      try await withGroup([Worker(channel) { _ in }], vault) {
        $0.lease = lease
      } _: { _, messages, _ in
        _ = try await messages.engine()
        try await eventually { messages.state == .stopped }
      }
    }
    #expect(error?.code == .invalidArgument)
  }

  @Test func `the lease of a job is renewed while its handler works`() async throws {
    let (vault, log) = (try await makeVault(), log)
    let worker = Worker(channel) { _ in
      log.note("begin")
      try await eventually { log.all.contains("renewed") }
      log.note("end")
    }
    try await withGroup([worker], vault) {
      $0.lease = .seconds(2)
    } _: { _, messages, _ in
      try await publish(["slow"], messages)
      try await log.wait(for: "begin")
      let engine = try await messages.engine()
      var ends: Set<Int64> = []
      try await eventually {
        let end = try await engine.read { db in
          try Int64.fetchOne(db, sql: "SELECT held_until FROM delivery WHERE lease IS NOT NULL")
        }
        if let end { ends.insert(end) }
        return ends.count >= 2
      }
      log.note("renewed")
      try await log.wait(for: "end")
    }
    try await after(vault) { engine in
      let count = try await engine.statistics().messageCount
      #expect(count == 0)
    }
  }

  /// A worker whose handler notes its beginning and its cancellation, and does nothing else.
  private func waitingWorker(concurrency: Int? = nil) -> Worker {
    Worker(channel, concurrency: concurrency) { [log] _ in
      log.note("begin")
      do {
        // Only a cancellation ends it.
        try await Task.sleep(for: .seconds(600))
      } catch {
        log.note("cancelled")
        throw error
      }
    }
  }

  @Test func `a handler whose lease is lost is cancelled, and settles nothing`() async throws {
    let (vault, log) = (try await makeVault(), log)
    let worker = waitingWorker()
    try await withGroup([worker], vault) {
      $0.lease = .milliseconds(300)
    } _: { _, messages, service in
      try await publish(["one"], messages)
      try await log.wait(for: "begin")
      service.pause()
      // Its operator removes the consumer, and with it the lease.
      try await messages.engine().removeConsumer(.default, of: channel)
      try await log.wait(for: "cancelled")
    }
  }

  @Test func `a paused channel gets no jobs until it is resumed`() async throws {
    let (vault, log) = (try await makeVault(), log)
    let other = try Channel("other")
    let workers = [channel, other].map { channel in
      Worker(channel) { _ in log.note(channel.name) }
    }
    try await withGroup(workers, vault) { _, messages, service in
      service.pause(channel)
      try await publish(["one"], messages)
      for count in 1...3 {
        _ = try await messages.engine().publish(Message(channel: other, "a"))
        try await log.wait(for: "other", count)
      }
      #expect(!log.all.contains("jobs"))
      service.resume()
      try await log.wait(for: "jobs")
    }
  }

  @Test func `a shutdown waits for running handlers, and takes no new jobs`() async throws {
    let (vault, log) = (try await makeVault(), log)
    let worker = Worker(channel, concurrency: 1) { job in
      log.note("begin \(job.delivery.string ?? "")")
      try await eventually { Task.isShuttingDownGracefully }
      // A shutdown that does not wait ends before.
      try await Task.sleep(for: .milliseconds(50))
      log.note("end")
    }
    try await withGroup([worker], vault) { group, messages, _ in
      try await publish(["one", "two"], messages)
      try await log.wait(for: "begin")
    }
    #expect(log.all == ["begin one", "end"])
    try await after(vault) { engine in
      let rest = try await engine.receive(from: channel, maximumCount: 9)
      #expect(rest.map(\.string) == ["two"])
      #expect(rest.map(\.attempt) == [1])
    }
  }

  @Test func `a shutdown cancels slow handlers after its limit, without a counted attempt`()
    async throws
  {
    let (vault, log) = (try await makeVault(), log)
    let worker = Worker(channel) { _ in
      log.note("begin")
      // Only a cancellation ends it.
      try await Task.sleep(for: .seconds(600))
    }
    try await withGroup([worker], vault) {
      $0.drainTimeout = .milliseconds(20)
    } _: { _, messages, _ in
      try await publish(["slow"], messages)
      try await log.wait(for: "begin")
    }
    try await after(vault) { engine in
      let again = try await engine.receive(from: channel)
      #expect(again.map(\.attempt) == [1])
    }
  }

  @Test func `a lock cancels handlers and ends the group, and the jobs come again`() async throws {
    let (vault, log) = (try await makeVault(), log)
    let worker = waitingWorker()
    let error = await #expect(throws: EngineError.self) {
      try await withGroup([worker], vault) {
        $0.lease = .seconds(1)
      } _: { _, messages, _ in
        try await publish(["one"], messages)
        try await log.wait(for: "begin")
        await vault.lock()
        try await log.wait(for: "cancelled")
        // The group ends by the lock, not by the end of this body.
        try await eventually { (try? await messages.engine()) == nil }
      }
    }
    #expect(error?.code == .vaultLocked)
    // On a loaded machine a lease can end before the lock.
    let count = log.all.count { $0 == "begin" }
    try await vault.unlock(with: credentials("long secret"))
    try await after(vault) { engine in
      let again = try await engine.receive(from: channel, waitingUpTo: .seconds(60))
      #expect(again.map(\.attempt) == [count + 1])
    }
  }

  @Test func `a lock cancels the handlers of full slots long before a lease is extended`()
    async throws
  {
    let (vault, log) = (try await makeVault(), log)
    let worker = waitingWorker(concurrency: 1)
    // The group waits for an unlock: its end would cancel the handler too.
    try await withGroup([worker], vault, unlockTimeout: .seconds(3600)) {
      $0.lease = .seconds(3600)
      $0.concurrency = 1
    } _: { _, messages, _ in
      try await publish(["one"], messages)
      try await log.wait(for: "begin")
      await vault.lock()
      try await log.wait(for: "cancelled")
    }
  }

  @Test func `many channels share few slots, and every job is handled`() async throws {
    let (vault, log) = (try await makeVault(), log)
    let channels = try (0..<12).map { try Channel("c\($0)") }
    let shared = Shared()
    let workers = channels.map { channel in
      Worker(channel, concurrency: 2) { _ in
        shared.enter()
        await Task.yield()
        shared.leave()
        log.note("done")
      }
    }
    try await withGroup(workers, vault) {
      $0.concurrency = 3
    } _: { _, messages, _ in
      let engine = try await messages.engine()
      try await engine.publish(
        channels.flatMap { channel in (0..<10).map { Message(channel: channel, "\($0)") } })
      try await log.wait(for: "done", 120)
    }
    #expect(log.all.count == 120)
    #expect((1...3).contains(shared.most))
  }

  /// How many handlers run.
  private final class Shared: Sendable {
    private let counts = Mutex((now: 0, most: 0))
    var most: Int { counts.withLock { $0.most } }
    func enter() {
      counts.withLock {
        $0.now += 1
        $0.most = max($0.most, $0.now)
      }
    }
    func leave() { counts.withLock { $0.now -= 1 } }
  }
}
