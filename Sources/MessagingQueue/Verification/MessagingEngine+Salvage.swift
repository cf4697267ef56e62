public import DataVault
public import SealedSQLite
public import SealedVFS
public import SystemPackage
public import VaultedDatabase

/// What ``MessagingEngine/verify(_:vault:checksContents:progress:)`` has found.
public struct QueueVerification: Sendable {
  /// Pages and log: `docs/reference/verify-and-salvage.md`.
  public let pages: VerificationReport
  /// Whether the database knows its vault's rollback anchor: `docs/explanation/vaulted-database.md`, "Anchor".
  public let anchor: AnchorState
  /// The messages' own rules; nil where the pages are not clean, and were not asked.
  public let messages: MessageVerification?

  /// Whether nothing is wrong.
  public var isClean: Bool {
    pages.isClean && messages?.isClean == true && !anchor.isMissing
  }

  /// Whether the pages are whole, and the database is an older copy or has lost its last commits.
  public var isRolledBack: Bool { pages.isClean && anchor.isMissing }
}

/// What ``MessagingEngine/salvage(_:vault:acceptsRollback:progress:)`` has done.
public struct QueueSalvage: Sendable {
  /// Where the damaged database lies now, under the vault's key as before.
  public let damagedPath: FilePath
  /// What was copied, by table; nil when an earlier salvage was only finished.
  public let pages: SalvageReport?
  /// Whether the damaged one knew its vault's rollback anchor, `missing` when that was accepted; nil when an
  /// earlier salvage was only finished.
  public let anchor: AnchorState?
  /// What was done about rows that lacked others; nil when an earlier salvage was only finished.
  public let messages: MessageRepairReport?

  /// Whether nothing is lost, as far as anything tells.
  public var isComplete: Bool { pages?.isComplete == true && messages?.isComplete == true }
}

extension MessagingEngine {
  /// Verifies a home's messages: every page and the log, whether they are an older copy, then the messages'
  /// own rules.
  ///
  /// Nothing is changed, but that an interrupted salvage is finished. No engine may run on the home
  /// meanwhile.
  ///
  /// - Parameters:
  ///   - vault: the messaging vault of the home, unlocked.
  ///   - checksContents: whether SQLite also compares the pages with each other. Default: true.
  ///   - progress: told of pages, on a thread of the verification's own.
  /// - Throws: `busy`; `databaseMissing`, `databaseMismatch`, `plainDatabase`, `newerVersion`;
  ///   `vaultLocked`, `vault`, `inputOutput`.
  public static func verify(
    _ home: DataVaultHome, vault: Vault, checksContents: Bool = true,
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in }
  ) async throws(EngineError) -> QueueVerification {
    do {
      let found = try await VaultedDatabase.verify(
        home, vault: vault, ledger: EngineAnchorStorage(), checksContents: checksContents,
        progress: progress
      ) { db in try MessageVerifier.run(db) }
      return QueueVerification(pages: found.pages, anchor: found.anchor, messages: found.rows)
    } catch {
      throw EngineError(starting: error)
    }
  }

  /// Puts a new database with all messages that are still whole in the place of a damaged one:
  /// `docs/reference/verify-and-salvage.md`, "Messages".
  ///
  /// On return engines start on the new one, and the damaged one lies beside it under another name. Killed
  /// in the midst, either the damaged one is in its place, or the next opening finishes the rest. No
  /// engine may run on the home meanwhile.
  ///
  /// - Parameters:
  ///   - vault: the messaging vault of the home, unlocked.
  ///   - acceptsRollback: whether to go on where the database lacks the vault's rollback anchor: what it
  ///     has lost is then accepted as lost. Default: false. Where what it knows of the anchor cannot be read,
  ///     the salvage goes on, and ``QueueSalvage/anchor`` is `unreadable`.
  ///   - progress: told of pages, on a thread of the salvage's own.
  /// - Throws: `rolledBack` unless that is accepted, and what
  ///   ``verify(_:vault:checksContents:progress:)`` throws; `damaged` if no messages can be read, `diskFull`: the
  ///   damaged database is where it was then.
  public static func salvage(
    _ home: DataVaultHome, vault: Vault, acceptsRollback: Bool = false,
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in }
  ) async throws(EngineError) -> QueueSalvage {
    do {
      let salvaged = try await VaultedDatabase.salvage(
        home, vault: vault, ledger: EngineAnchorStorage(), acceptsRollback: acceptsRollback,
        progress: progress
      ) { pages, pool in
        let deliveries = pages.tables.first { $0.name == "delivery" }
        return try MessageRepairer.run(
          pool,
          lostDeliveries: deliveries.map { $0.pagesLost > 0 || $0.rowsLostAtLeast > 0 } ?? true)
      }
      return QueueSalvage(
        damagedPath: salvaged.damagedPath, pages: salvaged.pages, anchor: salvaged.anchor,
        messages: salvaged.rows)
    } catch {
      throw EngineError(starting: error)
    }
  }
}
