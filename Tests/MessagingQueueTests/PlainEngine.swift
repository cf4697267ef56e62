import FileLayer
import FileRecording
import Foundation
import GRDB
import MessagingQueue
import QueueFixture
import TestSupport

/// An engine's database on a plain file in a folder of its own, with clocks that stand still.
///
/// The last reference can go within a closure on the pool's own queue, so nothing here closes the
/// pool: GRDB does so when the pool is released.
final class PlainEngine: Sendable {
  private let scratch = ScratchFolder()
  var folder: URL { scratch.url }
  let time: ManualTimeSource
  let pool: DatabasePool
  let database: TestQueue

  init(
    time: ManualTimeSource = ManualTimeSource(),
    configuration: EngineConfiguration = EngineConfiguration()
  ) throws {
    self.time = time
    pool = try DatabasePool(path: scratch.path("messaging.db"))
    database = try TestQueue(pool: pool, time: time, configuration: configuration)
  }

  /// A second pool on the same file, as another process has it.
  func secondDatabase() throws -> TestQueue {
    try TestQueue(pool: DatabasePool(path: pool.path), time: time)
  }

  /// An engine on the same pool.
  func engine(
    isSecured: Bool = true, _ change: (inout EngineConfiguration) -> Void = { _ in },
    closePool: @escaping @Sendable () throws -> Void = {}
  ) throws -> MessagingEngine {
    try MessagingEngine(
      pool: pool, time: time, configuration: EngineConfiguration(change), isSecured: isSecured,
      closePool: closePool)
  }

  /// An engine with a pool of its own on the same file, as another process has it.
  func neighbour(
    through vfs: String? = nil, time: (any TimeSource)? = nil,
    _ change: (inout EngineConfiguration) -> Void = { _ in }
  ) throws -> MessagingEngine {
    let path = if let vfs { "file:\(pool.path)?vfs=\(vfs)" } else { pool.path }
    let own = try DatabasePool(path: path)
    return try MessagingEngine(
      pool: own, time: time ?? self.time, configuration: EngineConfiguration(change),
      isSecured: true, closePool: { try own.close() })
  }

  func number(_ sql: String) throws -> Int? {
    try pool.writeWithoutTransaction { db in try Int.fetchOne(db, sql: sql) }
  }

  /// The rules of the tables that are broken.
  func faults() throws -> [MessageVerification.Fault] {
    try pool.read { try MessageVerifier.run($0).faults }
  }

  func text(_ sql: String) throws -> String? {
    try pool.writeWithoutTransaction { db in try String.fetchOne(db, sql: sql) }
  }
}

extension EngineConfiguration {
  /// The default configuration with changes.
  init(_ change: (inout EngineConfiguration) -> Void) {
    self.init()
    change(&self)
  }
}

extension MessagingEngine {
  /// Publishes texts in one commit.
  @discardableResult
  func publish(_ texts: [String], to channel: Channel) async throws -> [Timetoken] {
    try await publish(texts.map { Message(channel: channel, payload: Array($0.utf8)) })
  }
}

extension LogMessage {
  var text: String { String(decoding: payload, as: UTF8.self) }
}

extension TestQueue {
  /// Publishes texts to one channel.
  @discardableResult
  func publish(_ texts: [String], to channel: Channel) throws -> [Timetoken] {
    try publish(texts.map { Message(channel: channel, payload: Array($0.utf8)) })
  }

  /// Receives with a lease of half a minute.
  func receive(
    _ count: Int, from channel: Channel, for consumer: Consumer = .default
  ) throws -> [Delivery] {
    try receive(from: channel, for: consumer, maximumCount: count, lease: .seconds(30))
  }
}

extension Delivery {
  var text: String { String(decoding: payload, as: UTF8.self) }
}

/// The code of the error that `body` throws; nil for none, and for errors that are not the
/// engine's.
func code(_ body: () throws -> Void) -> EngineError.Code? {
  do {
    try body()
    return nil
  } catch {
    return (error as? EngineError)?.code
  }
}
