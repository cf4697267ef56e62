public import DataVault
internal import GRDB
public import SealedVFS
public import SystemPackage
public import VaultedDatabase

/// A backup of a home: a directory with its vaults and one state of its database, sealed as they were.
///
///     let vault = try await Vault.get(.messaging, in: home.store)
///     try await vault.unlock(with: credentials)
///     try await HomeBackup.make(of: home, vault: vault, at: "/backup/2026-11-23")
///
/// The secrets that opened the vaults when the backup was made open it. The backup opens like a home, but do not use it
/// as one: restore it.
public struct HomeBackup: Sendable {
  /// The directory.
  public let path: FilePath

  /// Names a backup, without reading it.
  public init(_ path: FilePath) { self.path = path }

  /// The store of its vaults, which changes nothing: failed attempts to open one are not counted.
  public var store: any VaultStore { ReadOnlyVaultStore(home: path) }

  private var home: DataVaultHome { DataVaultHome(path, store: store) }

  /// What a backup has, after all of it was read.
  public struct Contents: Sendable {
    /// The number of vaults.
    public let vaultCount: Int
    /// The result of verifying the messages; nil if the home had none.
    public let messages: QueueVerification?
    /// The state of the messages; nil if the home had none, or no engine had started.
    public let state: State?
    /// As `VaultedDatabase.discardedLogFrameCount`, of the home when the backup was made.
    public let discardedLogFrameCount: Int

    /// Whether no fault was found.
    public var isClean: Bool { messages?.isClean ?? true }
  }

  /// The state of the messages in a backup: everything that was committed before is in it, and nothing else.
  public struct State: Sendable, Hashable {
    /// The number of the last commit.
    public let commitNumber: Int64
    /// The greatest timetoken that was given; nil before the first message.
    public let lastTimetoken: Timetoken?
  }
}

extension HomeBackup {
  /// Makes a backup while engines of any process publish and receive.
  ///
  /// It copies the state of one moment, page by page, under a new file id, and all vaults, the messaging vault bound to
  /// the copy. It then reads the copy again and verifies it. Securing the home, changing its key and salvaging it are
  /// `busy` until the pages are copied, and the home's log grows until then.
  ///
  /// The backup has its name when it is whole and durable. If the process is killed before, `.NAME.new` is left, which
  /// the next backup of that name removes.
  ///
  /// - Parameters:
  ///   - vault: the messaging vault of the home, unlocked; nil if the home has none.
  ///   - path: a path that is free, or an empty directory. Its parent directory must exist.
  ///   - checksContents: whether SQLite also compares the pages of the copy with each other. Default: true.
  ///   - progress: called with the pages done, first of the copying, then of the verification.
  /// - Throws: `alreadyExists`; `busy`, `rolledBack`, `damaged`, `diskFull`, `vaultLocked` and the other errors of
  ///   `MessagingEngine.start`. There is no backup then, and the home is as before.
  @discardableResult
  public static func make(
    of home: DataVaultHome, vault: Vault?, at path: FilePath, checksContents: Bool = true,
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in }
  ) async throws(EngineError) -> Contents {
    do {
      return Contents(
        try await DatabaseCoordinator(home: home).backUp(
          vault, to: path, anchorStorage: EngineAnchorStorage(), checksContents: checksContents,
          progress: progress, examine: Self.examineClean(hint: "run datavault queue verify")))
    } catch {
      throw EngineError(starting: error)
    }
  }

  /// Reads the whole backup and changes nothing.
  ///
  /// - Parameter vault: the messaging vault of ``store``, unlocked; nil if the backup has none.
  /// - Throws: `damaged` if a file is missing, was added or is another, or if the backup was used as a home;
  ///   `databaseMissing` if there is no backup; the errors of `MessagingEngine.verify(_:vault:checksContents:progress:)`.
  public func verify(
    vault: Vault?, checksContents: Bool = true,
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in }
  ) async throws(EngineError) -> Contents {
    do {
      return Contents(
        try await DatabaseCoordinator(home: home).verifyBackup(
          vault, anchorStorage: EngineAnchorStorage(), checksContents: checksContents,
          progress: progress, examine: Self.examine))
    } catch {
      throw EngineError(starting: error)
    }
  }

  /// Makes a home of the backup, verifies it, and gives it its name.
  ///
  /// An engine starts in it as in any other. Messages that were acknowledged after the backup are delivered again, and
  /// messages that were published after it are missing.
  ///
  /// - Parameters:
  ///   - path: of the new home; free, or an empty directory. Its parent directory must exist.
  ///   - vault: as in ``verify(vault:checksContents:progress:)``.
  /// - Throws: `alreadyExists`, `damaged`, `diskFull` and the like. There is no new home then.
  @discardableResult
  public func restore(
    to path: FilePath, vault: Vault?, checksContents: Bool = true,
    progress: @escaping @Sendable (PageProgress) -> Void = { _ in }
  ) async throws(EngineError) -> Contents {
    do {
      return Contents(
        try await DatabaseCoordinator(home: home).restore(
          vault, to: path, anchorStorage: EngineAnchorStorage(), checksContents: checksContents,
          progress: progress, examine: Self.examineClean(hint: "use an older backup")))
    } catch {
      throw EngineError(starting: error)
    }
  }

  fileprivate struct Finding: Sendable {
    let messages: MessageVerification
    let state: State?
  }

  private static func examine(_ db: Database) throws -> Finding {
    Finding(messages: try MessageVerifier.run(db), state: try State(db))
  }

  private static func examineClean(
    hint: String
  ) -> @Sendable (Database) throws -> Finding {
    { db in
      let finding = try examine(db)
      guard finding.messages.isClean else {
        throw EngineError(
          .damaged, "rows of the messages break the rules of the queue", hint: hint)
      }
      return finding
    }
  }
}

extension HomeBackup.Contents {
  fileprivate init(_ backup: VerifiedBackup<HomeBackup.Finding>) {
    vaultCount = backup.vaultCount
    messages = backup.database.map { QueueVerification($0, messages: $0.rows?.messages) }
    state = backup.database?.rows?.state
    discardedLogFrameCount = backup.discardedLogFrameCount
  }
}

extension HomeBackup.State {
  fileprivate init?(_ db: Database) throws {
    guard try db.tableExists("engine"),
      let row = try Row.fetchOne(db, sql: "SELECT commit_number, timetoken_high_water FROM engine")
    else { return nil }
    commitNumber = row[0]
    lastTimetoken = Timetoken(rawValue: row[1])
  }
}
