public import DataVault
internal import FileLayer

/// What every `VaultStore` promises, to be run against one.
///
/// Each ``Check`` needs a place of its own in which nothing is. In Swift Testing:
///
/// ```swift
/// @Test(arguments: VaultStoreConformance.Check.allCases)
/// func `the store keeps its promises`(check: VaultStoreConformance.Check) async throws {
///   let home = try TemporaryHome()
///   try await VaultStoreConformance { FileVaultStore(home: home.path) }.run(check)
/// }
/// ```
public struct VaultStoreConformance: Sendable {
  /// One promise.
  public enum Check: String, CaseIterable, Sendable, CustomStringConvertible {
    /// A place without vaults has none, and saying so is no error.
    case absentIsAResult = "what is absent is nil, and no error"
    /// The bytes come back as they were given, whatever they are.
    case writtenIsRead = "what was written is read by another object"
    /// A second write leaves nothing of the first.
    case writeReplaces = "a write replaces the whole vault, and no other"
    /// `ids` names vaults only, ascending.
    case idsAscend = "ids are ascending"
    /// A removed vault is absent, and may be made anew.
    case removedIsAbsent = "what was removed is absent"
    /// A retired vault is absent, each under a side name of its own.
    case retiredIsAbsent = "what was retired is absent and has a side name of its own"
    /// One lock a vault, among all objects.
    case lockExcludes = "a lock keeps others out until it is released"
    /// Different vaults do not wait for each other.
    case locksAreApart = "locks of two vaults are two"
    /// A vault as large as they become.
    case largeVault = "a large vault is kept whole"
    /// Writers that take the lock lose nothing; readers without it see whole vaults.
    case concurrentWriters = "writers at the same time lose no change, and readers see whole vaults"
    /// Locked, unreadable and unavailable are errors, each its own, and never "absent".
    case obstaclesAreNotAbsence = "an obstacle is its own error and never absence"
    /// What is remembered of attempts is remembered over all objects.
    case attemptsAreKept = "a record of attempts is kept, replaced and removed"
    /// A vault that is made anew begins without the failures of the one before.
    case attemptsEndWithTheirVault = "a record of attempts ends with its vault"
    /// One attempt at a time, during which the vault can be changed.
    case attemptsExclude = "a lock of attempts keeps other attempts out, and nothing else"
    /// Back-off cannot be escaped by locking the store, and a probe foretells what is not recorded.
    case attemptsSurviveObstacles = "no obstacle loses a record of attempts"
    /// Messages can say where a vault is.
    case locationNamesTheVault = "the location names the vault"

    /// The promise, as a sentence.
    public var description: String { rawValue }

    /// Whether only a store that keeps records of attempts promises it.
    public var concernsAttempts: Bool {
      switch self {
      case .attemptsAreKept, .attemptsEndWithTheirVault, .attemptsExclude,
        .attemptsSurviveObstacles:
        true
      default: false
      }
    }
  }

  /// Something that keeps a store from its vaults.
  public struct FaultInjection: Sendable {
    let code: VaultError.Code
    let raise: @Sendable () throws -> Void
    let clear: @Sendable () throws -> Void

    /// - Parameters:
    ///   - code: what reading a vault has to fail with meanwhile.
    ///   - raise: puts it there; the vault `conformance` exists then.
    ///   - clear: takes it away again.
    public init(
      _ code: VaultError.Code, raise: @escaping @Sendable () throws -> Void,
      clear: @escaping @Sendable () throws -> Void
    ) {
      self.code = code
      self.raise = raise
      self.clear = clear
    }
  }

  /// A promise that was not kept.
  public struct Violation: Error, CustomStringConvertible {
    /// The promise, and what the store did instead.
    public let description: String

    init(_ check: Check, _ what: String) {
      description = "\(check): \(what)"
    }
  }

  let open: @Sendable () throws -> any VaultStore
  let obstacles: [FaultInjection]
  let largeByteCount: Int
  let keepsAttempts: Bool

  /// - Parameters:
  ///   - obstacles: what ``Check/obstaclesAreNotAbsence`` puts in the store's way; none by default.
  ///   - largeByteCount: the size of a large vault: by default that of one with 16 MiB of items.
  ///   - keepsAttempts: whether the store claims to keep records of attempts, without which there is
  ///     neither back-off nor a retry limit. If it does not, checks of them do nothing.
  ///   - open: a new object for the same place at each call, or the same one if places are objects.
  public init(
    obstacles: [FaultInjection] = [], largeByteCount: Int = 30 << 20, keepsAttempts: Bool = true,
    open: @escaping @Sendable () throws -> any VaultStore
  ) {
    self.obstacles = obstacles
    self.largeByteCount = largeByteCount
    self.keepsAttempts = keepsAttempts
    self.open = open
  }

  /// Runs one check, on a thread where blocking is allowed.
  ///
  /// - Throws: ``Violation``, or what the store threw where it must not.
  public func run(_ check: Check) async throws {
    if check.concernsAttempts, !keepsAttempts { return }
    try await Runner(conformance: self, check: check).run()
  }
}

/// Runs checks where a store may block.
actor Runner {
  private let conformance: VaultStoreConformance
  private let check: VaultStoreConformance.Check
  private nonisolated let executor = BlockingExecutor(label: "datavault.conformance")

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  init(conformance: VaultStoreConformance, check: VaultStoreConformance.Check) {
    self.conformance = conformance
    self.check = check
  }

  func run() throws {
    let trial = StoreTrial(conformance, check)
    switch check {
    case .absentIsAResult: try trial.absentIsAResult()
    case .writtenIsRead: try trial.writtenIsRead()
    case .writeReplaces: try trial.writeReplaces()
    case .idsAscend: try trial.idsAscend()
    case .removedIsAbsent: try trial.removedIsAbsent()
    case .retiredIsAbsent: try trial.retiredIsAbsent()
    case .lockExcludes: try trial.lockExcludes()
    case .locksAreApart: try trial.locksAreApart()
    case .largeVault: try trial.largeVault()
    case .concurrentWriters: try trial.concurrentWriters()
    case .obstaclesAreNotAbsence: try trial.obstaclesAreNotAbsence()
    case .attemptsAreKept: try trial.attemptsAreKept()
    case .attemptsEndWithTheirVault: try trial.attemptsEndWithTheirVault()
    case .attemptsExclude: try trial.attemptsExclude()
    case .attemptsSurviveObstacles: try trial.attemptsSurviveObstacles()
    case .locationNamesTheVault: try trial.locationNamesTheVault()
    }
  }
}
