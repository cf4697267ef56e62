public import DataVault
public import SealedVFS
public import SystemPackage
public import VaultedDatabase

/// The result of ``MessagingEngine/verify(_:vault:checksContents:progress:)``.
public struct QueueVerification: Sendable {
  /// The result for pages and log: `docs/reference/verify-and-salvage.md`.
  public let pages: VerificationReport
  /// Whether the database knows its vault's rollback anchor: `docs/explanation/vaulted-database.md`, "Anchor".
  public let anchor: AnchorState
  /// The result for the messages' own rules; nil if the pages are not clean, as the rows were then
  /// not checked.
  public let messages: MessageVerification?
  /// The path of the damaged database, if the call first finished an interrupted salvage: messages
  /// can be missing.
  public let finishedSalvage: FilePath?

  /// Whether the verification found no fault.
  public var isClean: Bool {
    pages.isClean && messages?.isClean == true && !anchor.isMissing
  }

  /// Whether the pages are clean, but the database is an older copy or has lost its last commits.
  public var isRolledBack: Bool { pages.isClean && anchor.isMissing }
}

extension QueueVerification {
  init(_ database: VerifiedDatabase<some Sendable>, messages: MessageVerification?) {
    self.init(
      pages: database.pages, anchor: database.anchor, messages: messages,
      finishedSalvage: database.finishedSalvage)
  }
}

/// The result of ``MessagingEngine/salvage(_:vault:acceptsRollback:progress:)``.
public struct QueueSalvage: Sendable {
  /// The path of the damaged database now; it is still under the vault's key.
  public let damagedPath: FilePath
  /// The copied rows, by table; nil if this call only finished an earlier salvage.
  public let pages: SalvageReport?
  /// Whether the damaged database knew its vault's rollback anchor; `missing` if that was accepted.
  ///
  /// Nil if this call only finished an earlier salvage.
  public let anchor: AnchorState?
  /// The repairs of rows that lacked others; nil if this call only finished an earlier
  /// salvage.
  public let messages: MessageRepairReport?

  /// Whether nothing is lost, as far as the report shows; false if this call only finished an earlier
  /// salvage, whose report is lost.
  public var isComplete: Bool { pages?.isComplete == true && messages?.isComplete == true }
}

extension MessagingEngine {
  /// Verifies a home's messages: every page and the log, the rollback anchor, then the messages'
  /// own rules.
  ///
  /// The call only finishes an interrupted salvage and changes nothing else. No engine must run on
  /// the home at the same time.
  ///
  /// - Parameters:
  ///   - vault: the messaging vault of the home, unlocked.
  ///   - checksContents: whether SQLite also compares the pages with each other. Default: true.
  ///   - progress: called with the pages done, on the verification's own thread.
  /// - Throws: `busy`; `databaseMissing`, `databaseMismatch`, `plainDatabase`, `newerVersion`;
  ///   `vaultLocked`, `vault`, `inputOutput`.
  public static func verify(
    _ home: DataVaultHome, vault: Vault, checksContents: Bool = true,
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in }
  ) async throws(EngineError) -> QueueVerification {
    do {
      let found = try await DatabaseCoordinator(home: home).verify(
        of: vault, anchorStorage: EngineAnchorStorage(), checksContents: checksContents,
        progress: progress
      ) { db in try MessageVerifier.run(db) }
      return QueueVerification(found, messages: found.rows)
    } catch {
      throw EngineError(starting: error)
    }
  }

  /// Replaces a damaged database with a new one that has all intact messages:
  /// `docs/reference/verify-and-salvage.md`, "Messages".
  ///
  /// On return engines start on the new database, and the damaged one is beside it under another
  /// name. If the process is killed, either the damaged database is still in its place, or the next
  /// opening finishes the rest. No engine must run on the home at the same time.
  ///
  /// - Parameters:
  ///   - vault: the messaging vault of the home, unlocked.
  ///   - acceptsRollback: whether to continue if the database lacks the vault's rollback anchor;
  ///     the commits that it lacks are then accepted as lost. If its anchors cannot be read, the
  ///     salvage continues anyway, and ``QueueSalvage/anchor`` is `unreadable`. Default: false.
  ///   - progress: called with the pages done, on the salvage's own thread.
  /// - Throws: `rolledBack` unless accepted; the errors of
  ///   ``verify(_:vault:checksContents:progress:)``; `damaged` if no messages can be read;
  ///   `diskFull`. After an error the damaged database is still in its place.
  public static func salvage(
    _ home: DataVaultHome, vault: Vault, acceptsRollback: Bool = false,
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in }
  ) async throws(EngineError) -> QueueSalvage {
    do {
      let salvaged = try await DatabaseCoordinator(home: home).salvage(
        of: vault, anchorStorage: EngineAnchorStorage(), acceptsRollback: acceptsRollback,
        knownTables: EngineSchema.expectedTables(), progress: progress
      ) { pages, pool in
        let messages = pages.tables.first { $0.name == "message" }
        if let messages, messages.rowsCopied == 0, messages.pagesLost > 0,
          pages.lostAndFoundRowCount > 0
        {
          throw EngineError.noTableOfMessages
        }
        let areWhole = ["delivery", "dead_letter"].allSatisfy { name in
          pages.tables.contains { $0.name == name && $0.pagesLost == 0 && $0.rowsLostAtLeast == 0 }
        }
        return try MessageRepairer.run(pool, lostDeliveries: !areWhole)
      }
      return QueueSalvage(
        damagedPath: salvaged.damagedPath, pages: salvaged.pages, anchor: salvaged.anchor,
        messages: salvaged.rows)
    } catch {
      throw EngineError(starting: error)
    }
  }
}
