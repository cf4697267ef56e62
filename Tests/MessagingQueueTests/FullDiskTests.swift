import DataVault
import DataVaultTesting
import Foundation
import MessagingQueue
import SystemPackage
import TestSupport
import Testing
import VaultedDatabase

/// A queue that fills its disk, or reaches its limit.
@Suite struct FullDiskTests {
  private let scratch = ScratchFolder()

  private func message(_ number: Int) -> Message {
    let text = Array("\(number) ".utf8)
    return Message(channel: .orders, payload: text + [UInt8](repeating: 7, count: 4000))
  }

  private func refusal(_ work: () async throws -> Void) async -> EngineError.Code? {
    do {
      try await work()
      return nil
    } catch {
      return (error as? EngineError)?.code
    }
  }

  /// Publishes until it fails, and returns how many messages were published.
  private func fill(_ engine: MessagingEngine, _ code: EngineError.Code) async throws -> Int {
    for number in 0..<100_000 {
      if let found = await refusal({ try await engine.publish(message(number)) }) {
        #expect(found == code)
        return number
      }
    }
    return 0
  }

  @Test(.enabled(if: SmallDisk.isAvailable, "mounting a small tmpfs needs root"))
  func `a disk that the queue has filled is emptied by its receivers, also after a restart`()
    async throws
  {
    let disk = try SmallDisk(at: scratch.path("disk"), byteCount: 40 << 20)
    let home = DataVaultHome(FilePath(disk.path), vaultParameters: .cheap)
    let vault = try await Vault.create(
      .messaging, in: home.store, credentials: credentials("long secret"),
      parameters: home.vaultParameters)
    let configuration = EngineConfiguration { $0.reserveByteCount = 8 << 20 }
    let reserve = disk.path + "/messaging.db-reserve"
    func reserveSize() -> Int { FileManager.default.contents(atPath: reserve)?.count ?? -1 }

    var engine = try await MessagingEngine.start(home, vault: vault, configuration: configuration)
    #expect(reserveSize() == -1)
    try await engine.maintain()
    #expect(reserveSize() == 8 << 20)
    var count = try await fill(engine, .diskFull)
    #expect(count > 500)
    // Publishing does not touch the reserve.
    #expect(reserveSize() == 8 << 20)
    try await engine.stop()

    engine = try await MessagingEngine.start(home, vault: vault, configuration: configuration)
    var received: [Int] = []
    while true {
      let deliveries = try await engine.receive(from: .orders, maximumCount: 100)
      if deliveries.isEmpty { break }
      received += deliveries.map { Int($0.string?.split(separator: " ")[0] ?? "") ?? -1 }
      try await engine.acknowledge(deliveries.map(\.token))
    }
    #expect(received == Array(0..<count))
    try await engine.compact()
    try await engine.maintain()
    #expect(reserveSize() == 8 << 20)
    count = try await fill(engine, .diskFull)
    #expect(count > 500)
    #expect(try await engine.purge(.orders) == count)
    try await engine.compact()
    try await engine.publish(message(0))
    try await engine.stop()
  }

  @Test func `a reserve that is a symbolic link is neither made nor emptied`() async throws {
    let home = DataVaultHome(FilePath(scratch.path("home")), vaultParameters: .cheap)
    let vault = try await Vault.create(
      .messaging, in: home.store, credentials: credentials("long secret"),
      parameters: home.vaultParameters)
    let other = FilePath(scratch.path("other"))
    try Data(repeating: 7, count: 100).write(to: URL(filePath: other.string))
    let configuration = EngineConfiguration { $0.reserveByteCount = 1 << 20 }
    let engine = try await MessagingEngine.start(home, vault: vault, configuration: configuration)
    let reserve = scratch.path("home/messaging.db-reserve")
    try FileManager.default.createSymbolicLink(
      atPath: reserve, withDestinationPath: other.string)
    try await engine.maintain()
    try await engine.stop()
    #expect(FileManager.default.contents(atPath: other.string)?.count == 100)
  }

  @Test func `a queue at its limit refuses to publish, and takes more when there is space`()
    async throws
  {
    let plain = try PlainEngine()
    let engine = try plain.engine()
    try await engine.setMaximumDatabaseByteCount(2 << 20)
    let count = try await fill(engine, .queueFull)
    #expect((400...530).contains(count))
    #expect(
      await refusal {
        _ = try await engine.write { db in try engine.publish(message(0), in: db) }
      } == .queueFull)
    let deliveries = try await engine.receive(from: .orders, maximumCount: 50)
    try await engine.acknowledge(deliveries.map(\.token))
    try await engine.publish(message(count))
    #expect(try await engine.messageCount(of: .orders) == count - 50 + 1)
    try await engine.stop()
  }

  @Test func `a limit applies to every running engine on the database, and to imports`()
    async throws
  {
    let plain = try PlainEngine()
    let (engine, other) = (try plain.engine(), try plain.neighbour())
    try await other.publish(message(0))
    let file = FilePath(scratch.path("export"))
    _ = try await other.exportMessages(to: file)
    try await engine.setMaximumDatabaseByteCount(4096)
    let size = try await other.databaseSize()
    #expect(size.maximumByteCount == 4096)
    #expect(size.byteCount > 4096 && size.freeDiskByteCount > 0)
    #expect(await refusal { try await other.publish(message(1)) } == .queueFull)
    let targetPlace = try PlainEngine()
    let target = try targetPlace.engine()
    try await target.setMaximumDatabaseByteCount(4096)
    let stopped = await #expect(throws: EngineError.self) {
      _ = try await target.importMessages(from: file)
    }
    #expect(stopped?.code == .queueFull)
    #expect(stopped?.message.hasSuffix("; 0 lines of \(file) are imported") == true)
    for limit in [0, -1, .max] {
      #expect(
        await refusal { try await engine.setMaximumDatabaseByteCount(limit) } == .invalidArgument)
    }
    try await target.setMaximumDatabaseByteCount(nil)
    _ = try await target.importMessages(from: file)
    #expect(try await target.messageCount(of: .orders) == 1)
  }
}
