import GRDB
import Logging
import MessagingQueue
import MessagingQueueLifecycle
import Metrics
import NIOCore
import NIOExtras
import NIOPosix
import ServiceLifecycle
import Synchronization
import SystemPackage
import VaultedDatabase

/// Takes jobs on a Unix socket, a line `ID TEXT` each, and does four at a time.
@main struct Jobs {
  static func main() async throws {
    guard CommandLine.arguments.count == 3 else { return print("usage: Jobs HOME SOCKET") }
    let (home, socket) = (CommandLine.arguments[1], CommandLine.arguments[2])
    let counts = Counts()
    MetricsSystem.bootstrap(counts)

    // It starts while the vault is locked, and waits for `datavault unlock`.
    var waiting = EngineConfiguration()
    waiting.unlockTimeout = .seconds(365 * 86_400)
    let messages = MessagingService(DataVaultHome(FilePath(home)), configuration: waiting)
    let channel = try Channel("jobs")
    var configuration = WorkerConfiguration()
    configuration.concurrency = 4
    configuration.maximumAttempts = 3
    configuration.backoff.first = .milliseconds(100)
    configuration.onDeath = { print("\($0.headers["id"] ?? "?") failed for good: \($1)") }
    let workers = WorkerService(messages, [worker(channel)], configuration: configuration)
    let desk = Desk(socket: socket, messages: messages, channel: channel, counts: counts)
    // The group stops the last service first: no more lines, running jobs finish, the database closes.
    try await ServiceGroup(
      services: [messages, workers, desk], gracefulShutdownSignals: [.sigterm, .sigint],
      logger: Logger(label: "jobs")
    ).run()
  }

  /// Does a job: it reverses a text, in place of real work.
  static func worker(_ channel: MessagingQueue.Channel) -> Worker {
    Worker(channel) { job in
      guard let text = job.delivery.string else { throw JobFailure.reject(reason: "no UTF-8") }
      if text == "fail" { throw JobFailure.retry(reason: "told to fail") }
      if text == "wait" { try await Task.sleep(for: .seconds(2)) }
      let (id, result) = (job.delivery.headers["id"], String(text.reversed()))
      // The result and the acknowledgement of the job are committed together, or neither.
      try await job.complete { db in
        try db.execute(sql: "UPDATE job SET result = ? WHERE id = ?", arguments: [result, id])
      }
    }
  }
}

/// Answers the lines of clients on a Unix socket, with swift-nio.
struct Desk: Service {
  let socket: String
  let messages: MessagingService
  let channel: MessagingQueue.Channel
  let counts: Counts

  func answer(_ line: String) async -> String {
    if line == "metrics" { return counts.text }
    guard let engine = messages.runningEngine else { return "no: the vault is locked" }
    do {
      let words = line.split(separator: " ", maxSplits: 1).map(String.init)
      guard words.count == 2 else { return try await result(of: line, engine) }
      try await store(words[0], words[1], engine)
      return "ok"
    } catch {
      return "no: \(error)"
    }
  }

  /// Stores the job in our own table and publishes it, in one transaction.
  private func store(_ id: String, _ text: String, _ engine: MessagingEngine) async throws {
    let message = Message(channel: channel, .text(text), headers: ["id": id])
    try await engine.write { db in
      try db.execute(sql: "CREATE TABLE IF NOT EXISTS job (id TEXT PRIMARY KEY, result TEXT)")
      try db.execute(sql: "INSERT OR IGNORE INTO job (id) VALUES (?)", arguments: [id])
      // The same line again, after a lost answer, is the same job.
      if db.changesCount == 1 { try engine.publish(message, in: db) }
    }
  }

  private func result(of id: String, _ engine: MessagingEngine) async throws -> String {
    let sql = "SELECT ifnull(result, 'waiting') FROM job WHERE id = ?"
    let result = try await engine.read { try String.fetchOne($0, sql: sql, arguments: [id]) }
    return result ?? "no: unknown job"
  }

  func run() async throws {
    let server = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup).bind(
      unixDomainSocketPath: socket, cleanupExistingSocketFile: true
    ) { client in
      client.eventLoop.makeCompletedFuture {
        let decoder = ByteToMessageHandler(LineBasedFrameDecoder(), maximumBufferSize: 65_536)
        try client.pipeline.syncOperations.addHandler(decoder)
        // Without a writer of its own, which must not be dropped: a stop drops the clients that wait.
        return try NIOAsyncChannel<ByteBuffer, Never>(wrappingChannelSynchronously: client)
      }
    }
    try await withThrowingDiscardingTaskGroup { group in
      try await server.executeThenClose { clients in
        for try await client in clients.cancelOnGracefulShutdown() {
          // The end of one connection does not end the daemon.
          group.addTask { try? await serve(client) }
        }
      }
    }
  }

  private func serve(_ client: NIOAsyncChannel<ByteBuffer, Never>) async throws {
    try await client.executeThenClose { lines in
      for try await line in lines.cancelOnGracefulShutdown() {
        let answer = await answer(String(buffer: line)) + "\n"
        try await client.channel.writeAndFlush(ByteBuffer(string: answer))
      }
    }
  }
}

/// Counts what engine and workers report; a real daemon hands it to a metrics backend.
final class Counts: MetricsFactory {
  typealias Tags = [(String, String)]
  private let values = Mutex<[String: Int64]>([:])
  private let none = NOOPMetricsHandler.instance

  var text: String { values.withLock { "\($0)" } }

  final class Count: CounterHandler {
    let add: @Sendable (Int64) -> Void
    init(_ add: @escaping @Sendable (Int64) -> Void) { self.add = add }
    func increment(by amount: Int64) { add(amount) }
    func reset() {}
  }

  func makeCounter(label: String, dimensions: Tags) -> any CounterHandler {
    let name = ([label] + dimensions.map(\.1)).joined(separator: ".")
    return Count { amount in self.values.withLock { $0[name, default: 0] += amount } }
  }
  func makeRecorder(label: String, dimensions: Tags, aggregate: Bool) -> any RecorderHandler {
    none
  }
  func makeTimer(label: String, dimensions: Tags) -> any TimerHandler { none }
  func destroyCounter(_ handler: any CounterHandler) {}
  func destroyRecorder(_ handler: any RecorderHandler) {}
  func destroyTimer(_ handler: any TimerHandler) {}
}
