import DataVault
import DataVaultTesting
import Synchronization

/// An in-memory store that breaks one requirement.
final class FaultyStore: VaultStore {
  enum Fault: String, CaseIterable, Sendable {
    case takesLockedForAbsent, appends, forgetsToRemove, reusesSideNames, neverLocks,
      keepsTheOrderOfWriting, cutsOff, forgetsAttempts, keepsAttemptsOfTheRemoved,
      neverLocksAttempts, losesAttemptsWhenLocked, foretellsWhatFails

    var check: VaultStoreConformance.Check {
      switch self {
      case .takesLockedForAbsent: .obstaclesAreNotAbsence
      case .appends: .writeReplaces
      case .forgetsToRemove: .removedIsAbsent
      case .reusesSideNames: .retiredIsAbsent
      case .neverLocks: .lockExcludes
      case .keepsTheOrderOfWriting: .idsAscend
      case .cutsOff: .largeVault
      case .forgetsAttempts: .attemptsAreKept
      case .keepsAttemptsOfTheRemoved: .attemptsEndWithTheirVault
      case .neverLocksAttempts: .attemptsExclude
      case .losesAttemptsWhenLocked, .foretellsWhatFails: .attemptsSurviveObstacles
      }
    }
  }

  private struct State {
    var store = InMemoryVaultStore()
    var order: [VaultID] = []
    var isLocked = false
  }

  private let fault: Fault
  private let state = Mutex(State())
  private var store: InMemoryVaultStore { state.withLock { $0.store } }

  init(_ fault: Fault) { self.fault = fault }

  var isLocked: Bool {
    get { state.withLock { $0.isLocked } }
    set { state.withLock { $0.isLocked = newValue } }
  }

  func clear() { state.withLock { $0 = State() } }

  private func requireUnlocked() throws(VaultError) {
    if isLocked { throw VaultError(.storeLocked, "on purpose") }
  }

  func ids() throws(VaultError) -> [VaultID] {
    try requireUnlocked()
    let ids = try store.ids()
    return fault == .keepsTheOrderOfWriting
      ? state.withLock { $0.order.filter(ids.contains) } : ids
  }

  func read(_ id: VaultID) throws(VaultError) -> [UInt8]? {
    if isLocked, fault == .takesLockedForAbsent { return nil }
    try requireUnlocked()
    return try store.read(id)
  }

  func write(_ bytes: [UInt8], for id: VaultID) throws(VaultError) {
    try requireUnlocked()
    state.withLock { state in
      state.order.removeAll { $0 == id }
      state.order.append(id)
    }
    switch fault {
    case .appends: try store.write((try store.read(id) ?? []) + bytes, for: id)
    case .cutsOff: try store.write(Array(bytes.prefix(60_000)), for: id)
    default: try store.write(bytes, for: id)
    }
  }

  func remove(_ id: VaultID) throws(VaultError) {
    try requireUnlocked()
    if fault == .forgetsToRemove { return }
    let attempts = try store.readAttempts(id)
    try store.remove(id)
    if fault == .keepsAttemptsOfTheRemoved, let attempts {
      try store.writeAttempts(attempts, for: id, durably: true)
    }
  }

  func retire(_ id: VaultID) throws(VaultError) -> String {
    try requireUnlocked()
    let name = try store.retire(id)
    return fault == .reusesSideNames ? "retired" : name
  }

  func prepare() throws(VaultError) {}

  func lock(_ id: VaultID) throws(VaultError) -> VaultStoreLock {
    fault == .neverLocks ? VaultStoreLock {} : try store.lock(id)
  }

  func readAttempts(_ id: VaultID) throws(VaultError) -> [UInt8]? { try store.readAttempts(id) }

  func writeAttempts(_ bytes: [UInt8], for id: VaultID, durably: Bool) throws(VaultError) {
    if fault == .forgetsAttempts { return }
    if isLocked, fault == .losesAttemptsWhenLocked { return }
    if fault == .foretellsWhatFails { try requireUnlocked() }
    try store.writeAttempts(bytes, for: id, durably: durably)
  }

  func removeAttempts(_ id: VaultID) throws(VaultError) { try store.removeAttempts(id) }

  func lockAttempts(_ id: VaultID) throws(VaultError) -> VaultStoreLock {
    fault == .neverLocksAttempts ? VaultStoreLock {} : try store.lockAttempts(id)
  }

  func location(of id: VaultID) -> String { "\(id)" }
}
