public import DataVault
public import SealedSQLite
public import SealedVFS
public import SystemPackage
public import VaultedDatabase

/// What ``MessagingEngine/verify(_:vault:checksContents:progress:)`` has found.
public struct QueueVerification: Sendable {
  /// Pages and log: `docs/verify-and-salvage.md`.
  public let pages: Verification
  /// The messages' own rules; nil where the pages are not clean, and were not asked.
  public let messages: MessageVerification?

  /// Whether nothing is wrong.
  public var isClean: Bool { pages.isClean && messages?.isClean == true }
}

/// What ``MessagingEngine/salvage(_:vault:progress:)`` has done.
public struct QueueSalvage: Sendable {
  /// Where the damaged database lies now, under the vault's key as before.
  public let damagedPath: FilePath
  /// What was copied, by table; nil when an earlier salvage was only finished.
  public let pages: Salvage?
  /// What was done about rows that lacked others, likewise.
  public let messages: MessageMending?

  /// Whether nothing is lost, as far as anything tells.
  public var isComplete: Bool { pages?.isComplete == true && messages?.isComplete == true }
}

extension MessagingEngine {
  /// Verifies a home's messages: every page and the log, then the messages' own rules.
  ///
  /// Nothing is changed, but that an interrupted salvage is finished. No engine may run on the home
  /// meanwhile.
  ///
  /// - Parameters:
  ///   - vault: the messaging vault of the home, unlocked.
  ///   - checksContents: whether SQLite also compares the pages with each other. Default: true.
  ///   - progress: told of pages, on a thread of the verification's own.
  /// - Throws: `busy`; `databaseMissing`, `foreignDatabase`, `plainDatabase`, `newerVersion`;
  ///   `vaultLocked`, `vault`, `inputOutput`.
  public static func verify(
    _ home: DataVaultHome, vault: Vault, checksContents: Bool = true,
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in }
  ) async throws(EngineError) -> QueueVerification {
    do {
      let found = try await VaultedDatabase.verify(
        home, vault: vault, checksContents: checksContents, progress: progress
      ) { db in try MessageVerifier.run(db) }
      return QueueVerification(pages: found.pages, messages: found.rows)
    } catch {
      throw EngineError(starting: error)
    }
  }

  /// Puts a new database with all messages that are still whole in the place of a damaged one:
  /// `docs/verify-and-salvage.md`, "Messages".
  ///
  /// On return engines start on the new one, and the damaged one lies beside it under another name. Killed
  /// in the midst, either the damaged one is in its place, or the next opening finishes the rest. No
  /// engine may run on the home meanwhile.
  ///
  /// - Throws: as ``verify(_:vault:checksContents:progress:)``; `damaged` if no messages can be read,
  ///   `diskFull`: the damaged database is where it was then.
  public static func salvage(
    _ home: DataVaultHome, vault: Vault,
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in }
  ) async throws(EngineError) -> QueueSalvage {
    do {
      let salvaged = try await VaultedDatabase.salvage(home, vault: vault, progress: progress) {
        pages, pool in
        let deliveries = pages.tables.first { $0.name == "delivery" }
        return try MessageMender.run(
          pool,
          lostDeliveries: deliveries.map { $0.pagesLost > 0 || $0.rowsLostAtLeast > 0 } ?? true)
      }
      return QueueSalvage(
        damagedPath: salvaged.damagedPath, pages: salvaged.pages, messages: salvaged.rows)
    } catch {
      throw EngineError(starting: error)
    }
  }
}
