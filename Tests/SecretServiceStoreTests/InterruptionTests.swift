import DataVault
import DataVaultTesting
import FileLayer
import FileRecording
import Foundation
import PrivateKeyring
import SecretServiceStore
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

/// Tests that interrupt every change of a vault in the keyring at each call over the bus.
///
/// They run serially, because their calls block threads that other tests need.
@Suite(
  .enabled(if: PrivateKeyring.isAvailable, Comment(rawValue: PrivateKeyring.skipReason)),
  .serialized)
struct InterruptionTests {
  private static let stride = Exhaustive.distance(8)

  /// The first call at which a change is interrupted.
  private static func firstCall(_ change: Change, _ moment: BusMoment) -> Int {
    Exhaustive.first("\(change) \(moment)", of: stride)
  }

  /// A change, with the expected state before it.
  enum Change: CaseIterable, Sendable {
    case create, set, changePassword, remove, retire

    var hasVaultBefore: Bool { self != .create }

    func make(in store: SecretServiceStore) async throws {
      switch self {
      case .create:
        _ = try await FastTestVault.create(.messaging, in: store, credentials: credentials("old"))
      case .set:
        try await InterruptionTests.open(store, "old")
          .set(secret("2"), kind: .string, for: "added")
      case .changePassword:
        try await InterruptionTests.open(store, "old").changePassword(to: credentials("new"))
      case .remove: try await Vault.delete(.messaging, in: store)
      case .retire:
        let lock = try store.lock(.messaging)
        defer { lock.release() }
        _ = try store.retire(.messaging)
      }
    }
  }

  static func open(_ store: SecretServiceStore, _ password: String) async throws -> Vault {
    let vault = try await FastTestVault.get(.messaging, in: store)
    try await vault.unlock(with: credentials(password))
    return vault
  }

  /// Everything that can be observed of a home: equal states have equal views.
  private static func view(_ store: SecretServiceStore) async throws -> String {
    guard try await Vault.exists(.messaging, in: store) else {
      return "absent, \(try store.retiredNames().count) retired"
    }
    for password in ["old", "new"] {
      let vault = try await FastTestVault.get(.messaging, in: store)
      do throws(VaultError) {
        try await vault.unlock(with: credentials(password))
      } catch {
        guard error.code == .wrongPassword else { throw error }
        continue
      }
      return "\(password): \(try await vault.itemNames().map(\.name).joined(separator: " "))"
    }
    return "no password opens it"
  }

  private static func prepare(_ change: Change, _ store: SecretServiceStore) async throws {
    guard change.hasVaultBefore else { return try store.prepare() }
    let vault = try await FastTestVault.create(
      .messaging, in: store, credentials: credentials("old"))
    try await vault.set(secret("1"), kind: .string, for: "kept")
  }

  /// The number of items in all homes that are neither vaults nor retired vaults.
  private static func unfinishedCount(_ keyring: PrivateKeyring) throws -> Int {
    let outcome = try keyring.run(
      PrivateKeyring.secretToolProgram,
      ["search", "--all", "application", "datavault", "unfinished", "messaging"])
    return String(decoding: outcome.output, as: UTF8.self)
      .split(separator: "\n").count { $0.hasPrefix("[") }
  }

  /// Requires the old or the new state after an interruption, and that the next change succeeds.
  private static func requireOldOrNew(
    _ store: SecretServiceStore, old: String, new: String, _ place: Comment
  ) async throws {
    let seen = try await view(store)
    #expect(seen == old || seen == new, place)
    // The next change must succeed, whether it repeats the interrupted one or follows it.
    if seen.hasPrefix("absent") {
      try await Change.create.make(in: store)
    } else {
      try await open(store, seen.hasPrefix("new") ? "new" : "old")
        .set(secret("3"), kind: .string, for: "later")
    }
    #expect(try await view(store) != seen, place)
    #expect(try store.ids() == [.messaging], place)
  }

  private static func store(
    _ keyring: PrivateKeyring, _ number: Int, _ interruption: BusFaultInjector? = nil
  ) -> SecretServiceStore {
    SecretServiceStore(
      home: keyring.folder.appending("home-\(number)"), busAddress: keyring.busAddress,
      mayContinue: interruption?.pass)
  }

  /// Interrupts a change at one call after the other, and returns the number of interruptions.
  private static func interrupt(
    _ change: Change, _ moment: BusMoment, in keyring: PrivateKeyring, old: String, new: String,
    killsService: Bool = false
  ) async throws -> Int {
    let killed = Unchecked(value: keyring)
    let kill: @Sendable () -> Void = { killed.value.stopKeyring() }
    var number = firstCall(change, moment)
    var count = 0
    while true {
      try await prepare(change, store(keyring, number))
      let interruption = BusFaultInjector(atCall: number, moment, doing: killsService ? kill : nil)
      var failure: VaultError.Code?
      do {
        try await change.make(in: store(keyring, number, interruption))
      } catch let error as VaultError {
        failure = error.code
      }
      guard interruption.hasHappened else { break }
      #expect(failure == .storeUnavailable || failure == .writeFailed, "call \(number)")
      if killsService { try keyring.startUnlocked() }
      try await requireOldOrNew(store(keyring, number), old: old, new: new, "call \(number)")
      number += stride
      count += 1
    }
    #expect(number >= 5)
    #expect(try unfinishedCount(keyring) == 0)
    return count
  }

  @Test(arguments: Change.allCases, BusMoment.allCases)
  func `a change that is interrupted at any call leaves the old or the new vault`(
    change: Change, moment: BusMoment
  ) async throws {
    let keyring = try PrivateKeyring()
    try keyring.startUnlocked()
    // A run without interruption, for the states before and after.
    let whole = Self.store(keyring, -1)
    try await Self.prepare(change, whole)
    let old = try await Self.view(whole)
    try await change.make(in: whole)
    let new = try await Self.view(whole)
    #expect(old != new)
    let count = try await Self.interrupt(change, moment, in: keyring, old: old, new: new)
    print("secret service, \(change), \(moment): \(count) interruptions, lost: 0")
  }

  @Test(arguments: [Change.create, .set])
  func `a service that is killed at any call leaves the old or the new vault`(
    change: Change
  ) async throws {
    let keyring = try PrivateKeyring()
    try keyring.startUnlocked()
    _ = try await Self.interrupt(
      change, .beforeCall, in: keyring,
      old: change == .create ? "absent, 0 retired" : "old: kept",
      new: change == .create ? "old: " : "old: added kept", killsService: true)
  }

  // MARK: The directory of the keyrings

  @Test func `a change synchronizes the keyring's directory`() async throws {
    let keyring = try PrivateKeyring()
    try keyring.startUnlocked()
    let keyrings = keyring.folder.appending("user/data/keyrings")
    #expect(try LinuxFileSystem().entries(of: keyrings)?.isEmpty == false)
    for change in Change.allCases {
      let home = keyring.folder.appending("home-\(change)")
      let plain = SecretServiceStore(home: home, busAddress: keyring.busAddress)
      try await Self.prepare(change, plain)
      let recorder = FileRecorder()
      try await change.make(
        in: SecretServiceStore(
          home: home, busAddress: keyring.busAddress,
          fileSystem: RecordingFileSystem(recorder: recorder), keyrings: keyrings))
      let count = recorder.events.count { $0 == .synchronizeDirectory(keyrings) }
      #expect(count == 1, "\(change)")
    }
  }

  @Test func `a failed synchronization of the keyring's directory is reported`() async throws {
    let keyring = try PrivateKeyring()
    try keyring.startUnlocked()
    let keyrings = keyring.folder.appending("user/data/keyrings")
    try keyring.store.prepare()
    let recorder = FileRecorder(fault: .failure(atEvent: 0, .ioError))
    let store = SecretServiceStore(
      home: keyring.home, busAddress: keyring.busAddress,
      fileSystem: RecordingFileSystem(recorder: recorder), keyrings: keyrings)
    let error = #expect(throws: VaultError.self) {
      try store.write([1], for: .messaging)
    }
    #expect(error?.code == .writeFailed)
    #expect(error?.hint?.contains("did not confirm") == true)
    #expect(try keyring.store.read(.messaging) == [1])
  }
}
