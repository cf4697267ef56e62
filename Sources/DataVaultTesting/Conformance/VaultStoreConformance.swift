public import DataVault
internal import FileLayer

/// The requirements of `VaultStore`, as checks that run against any implementation.
///
/// Each ``Check`` needs an empty store of its own. In Swift Testing:
///
/// ```swift
/// @Test(arguments: VaultStoreConformance.Check.allCases)
/// func `the store passes the conformance check`(check: VaultStoreConformance.Check) async throws {
///   let home = try TemporaryHome()
///   try await VaultStoreConformance { FileVaultStore(home: home.path) }.run(check)
/// }
/// ```
public struct VaultStoreConformance: Sendable {
  /// One requirement.
  public enum Check: String, CaseIterable, Sendable, CustomStringConvertible {
    /// An empty store returns no vaults, and that is not an error.
    case absentIsAResult = "an absent vault is nil, not an error"
    /// The store returns exactly the bytes that were written, whatever they are.
    case writtenIsRead = "another object reads the bytes that were written"
    /// A second write leaves nothing of the first.
    case writeReplaces = "a write replaces one whole vault and no other"
    /// `ids` lists vaults only, in ascending order.
    case idsAscend = "ids are ascending"
    /// A removed vault is absent and can be created again.
    case removedIsAbsent = "a removed vault is absent"
    /// A retired vault is absent and has a side name of its own.
    case retiredIsAbsent = "a retired vault is absent and has a side name of its own"
    /// A vault has one lock, shared by all objects.
    case lockExcludes = "a lock excludes others until it is released"
    /// Different vaults do not wait for each other.
    case locksAreApart = "two vaults have separate locks"
    /// The store holds a vault of the maximum size.
    case largeVault = "a large vault is stored completely"
    /// Writers that hold the lock lose no change; readers without it see complete vaults.
    case concurrentWriters = "concurrent writers lose no change, and readers see complete vaults"
    /// Locked, unreadable and unavailable stores report an error of their own, never "absent".
    case obstaclesAreNotAbsence = "an obstacle is an error of its own, never absence"
    /// All objects share the record of attempts.
    case attemptsAreKept = "a record of attempts is kept, replaced and removed"
    /// A vault that is created again begins without the failures of the earlier one.
    case attemptsEndWithTheirVault = "a record of attempts ends with its vault"
    /// One attempt runs at a time, and the vault can be changed during it.
    case attemptsExclude = "a lock of attempts excludes other attempts and nothing else"
    /// Locking the store does not bypass the back-off, and a probe predicts whether a failure can
    /// be recorded.
    case attemptsSurviveObstacles = "no obstacle loses a record of attempts"
    /// The location in messages identifies the vault.
    case locationNamesTheVault = "the location contains the vault's name"

    /// The requirement as a sentence.
    public var description: String { rawValue }

    /// Whether the requirement applies only to stores that keep records of attempts.
    public var concernsAttempts: Bool {
      switch self {
      case .attemptsAreKept, .attemptsEndWithTheirVault, .attemptsExclude,
        .attemptsSurviveObstacles:
        true
      default: false
      }
    }
  }

  /// An obstacle between a store and its vaults.
  public struct Obstacle: Sendable {
    let code: VaultError.Code
    let raise: @Sendable () throws -> Void
    let clear: @Sendable () throws -> Void

    /// - Parameters:
    ///   - code: the error with which reading a vault must fail during the obstacle.
    ///   - raise: creates the obstacle; the vault `conformance` then exists.
    ///   - clear: removes the obstacle.
    public init(
      _ code: VaultError.Code, raise: @escaping @Sendable () throws -> Void,
      clear: @escaping @Sendable () throws -> Void
    ) {
      self.code = code
      self.raise = raise
      self.clear = clear
    }
  }

  /// A requirement that the store does not meet.
  public struct Violation: Error, CustomStringConvertible {
    /// The requirement, and the store's behaviour.
    public let description: String

    init(_ check: Check, _ what: String) {
      description = "\(check): \(what)"
    }
  }

  let open: @Sendable () throws -> any VaultStore
  let obstacles: [Obstacle]
  let largeByteCount: Int
  let keepsAttempts: Bool

  /// - Parameters:
  ///   - obstacles: the obstacles for ``Check/obstaclesAreNotAbsence``; none by default.
  ///   - largeByteCount: the size of a large vault in bytes; by default that of a vault with 16 MiB
  ///     of items.
  ///   - keepsAttempts: whether the store keeps records of attempts; without them it has neither
  ///     back-off nor a retry limit. If false, the checks of attempts do nothing.
  ///   - open: opens the same store with a new object at each call; an in-memory store returns the
  ///     same object.
  public init(
    obstacles: [Obstacle] = [], largeByteCount: Int = 30 << 20, keepsAttempts: Bool = true,
    open: @escaping @Sendable () throws -> any VaultStore
  ) {
    self.obstacles = obstacles
    self.largeByteCount = largeByteCount
    self.keepsAttempts = keepsAttempts
    self.open = open
  }

  /// Runs one check, on a thread that can block.
  ///
  /// - Throws: ``Violation``, or the store's error where it must not throw one.
  public func run(_ check: Check) async throws {
    if check.concernsAttempts, !keepsAttempts { return }
    try await onBlockingThread("datavault.conformance") {
      try StoreTrial(self, check).run()
    }
  }
}

extension StoreTrial {
  fileprivate func run() throws {
    switch check {
    case .absentIsAResult: try absentIsAResult()
    case .writtenIsRead: try writtenIsRead()
    case .writeReplaces: try writeReplaces()
    case .idsAscend: try idsAscend()
    case .removedIsAbsent: try removedIsAbsent()
    case .retiredIsAbsent: try retiredIsAbsent()
    case .lockExcludes: try lockExcludes()
    case .locksAreApart: try locksAreApart()
    case .largeVault: try largeVault()
    case .concurrentWriters: try concurrentWriters()
    case .obstaclesAreNotAbsence: try obstaclesAreNotAbsence()
    case .attemptsAreKept: try attemptsAreKept()
    case .attemptsEndWithTheirVault: try attemptsEndWithTheirVault()
    case .attemptsExclude: try attemptsExclude()
    case .attemptsSurviveObstacles: try attemptsSurviveObstacles()
    case .locationNamesTheVault: try locationNamesTheVault()
    }
  }
}
