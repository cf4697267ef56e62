import AccessControl
@testable import ApplicationStore
import DataVault
import DataVaultTesting
import FileLayer
import Foundation
import GRDB
import MessagingQueue
import Synchronization
import TestSupport
import VaultCrypto

/// The store of an engine on a plain file in a folder of its own, with a vault in memory and a clock
/// that stands still.
///
/// Nothing closes the pools: GRDB does so when they are released.
final class StoreFixture: Sendable {
  private let scratch = ScratchFolder()
  private let clock = Mutex(start)
  let vaults = InMemoryVaultStore()
  let vault: Vault
  let engine: MessagingEngine

  var now: Date {
    get { clock.withLock { $0 } }
    set { clock.withLock { $0 = newValue } }
  }

  init() async throws {
    vault = try await FastTestVault.create(
      .messaging, in: vaults, credentials: credentials("secret"))
    engine = try Self.engine(scratch)
  }

  private static func engine(_ scratch: ScratchFolder) throws -> MessagingEngine {
    try MessagingEngine(
      pool: DatabasePool(path: scratch.path("messaging.db")), time: SystemTimeSource(),
      isSecured: true)
  }

  /// A store on this engine.
  func store(_ change: (inout ApplicationLimits) -> Void = { _ in }) async throws
    -> ApplicationStore
  {
    try await store(of: engine, change)
  }

  /// A store on an engine and a vault of its own, as another process has it.
  func neighbour(_ change: (inout ApplicationLimits) -> Void = { _ in }) async throws
    -> ApplicationStore
  {
    try await store(of: Self.engine(scratch), change)
  }

  private func store(
    of engine: MessagingEngine, _ change: (inout ApplicationLimits) -> Void
  ) async throws -> ApplicationStore {
    var limits = ApplicationLimits()
    limits.passwordIterationCount = 10
    change(&limits)
    return try await ApplicationStore.open(
      engine, vault: unlockedVault(), limits: limits, now: { [self] in now })
  }

  /// The vault, opened as by another process.
  func unlockedVault() async throws -> Vault {
    let vault = try await FastTestVault.get(.messaging, in: vaults)
    try await vault.unlock(with: credentials("secret"))
    return vault
  }

  /// Changes the file behind the back of the store.
  func execute(_ sql: String) async throws {
    try await engine.write { db in try db.execute(sql: sql) }
  }

  func number(_ sql: String) async throws -> Int? {
    try await engine.read { db in try Int.fetchOne(db, sql: sql) }
  }

  /// Every value of every table of the store, as bytes.
  func cells() async throws -> [Data] {
    try await engine.read { db in
      let tables = try String.fetchAll(
        db, sql: "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'application%'")
      return try tables.flatMap { table in
        try Row.fetchAll(db, sql: "SELECT * FROM \(table)").flatMap { row in
          row.databaseValues.map { value in
            switch value.storage {
            case .blob(let data): data
            case .string(let text): Data(text.utf8)
            default: Data()
            }
          }
        }
      }
    }
  }

  /// Tables whose counts in `application` differ from their rows.
  func wrongCounts() async throws -> Int? {
    try await number(
      """
      SELECT count(*) FROM application AS a WHERE
        a.grant_count <> (SELECT count(*) FROM application_grant WHERE application_id = a.id)
          + (SELECT count(*) FROM application_revocation WHERE application_id = a.id)
        OR a.member_count <> (SELECT count(*) FROM application_group WHERE application_id = a.id)
        OR a.group_count <>
          (SELECT count(DISTINCT name) FROM application_group WHERE application_id = a.id)
      """)
  }
}

/// A moment with whole seconds: Tue, 14 Nov 2023 22:13:20 UTC.
let start = Date(timeIntervalSince1970: 1_700_000_000)

/// A number of minutes after ``start``.
func minute(_ minutes: Double) -> Date { start.addingTimeInterval(minutes * 60) }

/// The value of a fixture, which must be valid.
func made<Value>(_ value: @autoclosure () throws -> Value) -> Value {
  do { return try value() } catch { preconditionFailure("a fixture is not valid: \(error)") }
}

func channel(_ name: String) -> ChannelName { made(try ChannelName(name)) }
func group(_ name: String) -> GroupName { made(try GroupName(name)) }
func name(_ text: String) -> Name { made(try Name(text)) }
func digest(_ byte: UInt8) -> TokenDigest {
  TokenDigest(stored: [UInt8](repeating: byte, count: 32)).unsafelyUnwrapped
}

func grant(
  _ rights: Rights, on scope: Scope, for holder: GrantHolder = .everyone, minutes: Int = 0,
  from start: Date = start, of id: ApplicationID
) -> Grant {
  made(
    try Grant(
      rights, on: Grant.Key(scope, of: id, holder: holder), minutes: minutes, start: start))
}

extension ApplicationStore {
  /// The holder with an auth key.
  func holder(_ authKey: String, of id: ApplicationID) -> GrantHolder {
    .authKey(made(try keys.hasher.hash(Array(authKey.utf8), of: id)))
  }
}

/// The code of the error that `body` throws; nil for none, and for errors of other modules.
func code(
  _ body: () async throws -> Void
) async -> ApplicationStoreError.Code? {
  do {
    try await body()
    return nil
  } catch {
    return (error as? ApplicationStoreError)?.code
  }
}
