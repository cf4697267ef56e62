import DataVault
import DataVaultTesting
import Foundation
import PrivateKeyring
import SecretServiceStore
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

@Suite(.enabled(if: PrivateKeyring.isAvailable, Comment(rawValue: PrivateKeyring.skipReason)))
struct KeyringTests {
  private let keyring: PrivateKeyring

  init() throws { keyring = try PrivateKeyring() }

  /// Starts the service, and writes a vault of the byte 1.
  private func startWithVault() throws {
    try keyring.startUnlocked()
    try keyring.store.prepare()
    try keyring.store.write([1], for: .messaging)
  }

  private func attributes(_ name: String, _ value: String) -> [String] {
    ["application", "datavault", "home", keyring.home.string, name, value]
  }

  private func secretTool(_ arguments: [String], input: [UInt8] = []) throws -> [UInt8]? {
    let outcome = try keyring.run(PrivateKeyring.secretToolProgram, arguments, input: input)
    return outcome.status == 0 ? outcome.output : nil
  }

  @Test func `secret-tool reads a stored vault, and a vault that it stores opens`() async throws {
    try keyring.startUnlocked()
    let vault = try await FastTestVault.create(
      .messaging, in: keyring.store, credentials: credentials("p"))
    try await vault.set(SecretBytes(copying: [1, 2, 3]), kind: .binary, for: "item")
    let bytes = try #require(try keyring.store.read(.messaging))
    #expect(try secretTool(["lookup"] + attributes("vault", "messaging")) == bytes)

    try keyring.store.remove(.messaging)
    #expect(try secretTool(["lookup"] + attributes("vault", "messaging")) == nil)
    #expect(
      try secretTool(
        ["store", "--label=by hand"] + attributes("vault", "messaging"), input: bytes) != nil)
    let again = try await FastTestVault.get(.messaging, in: keyring.store)
    try await again.unlock(with: credentials("p"))
    #expect(try await again.item("item").bytes.byteCount == 3)
  }

  @Test func `a retired vault stays in the keyring but is not listed`() async throws {
    try startWithVault()
    let name = try keyring.store.retire(.messaging)
    #expect(name.hasSuffix("retired messaging.retired-1"))
    #expect(try secretTool(["lookup"] + attributes("retired", "messaging.retired-1")) == [1])
    #expect(try keyring.store.read(.messaging) == nil)
  }

  @Test func `a locked keyring or a wrong keyring password is never taken for an absent vault`()
    async throws
  {
    try startWithVault()
    for wrongPassword in [nil, "wrong"] {
      keyring.stopKeyring()
      try keyring.startLocked(wrongPassword: wrongPassword)
      let unknown = try VaultID("unknown")
      for id in [VaultID.messaging, unknown] {
        #expect(code { _ = try keyring.store.read(id) } == .storeLocked)
        #expect(code { try keyring.store.write([2], for: id) } == .storeLocked)
        #expect(code { try keyring.store.remove(id) } == .storeLocked)
        #expect(code { _ = try keyring.store.retire(id) } == .storeLocked)
      }
      #expect(code { _ = try keyring.store.ids() } == .storeLocked)
    }
    keyring.stopKeyring()
    try keyring.startUnlocked()
    #expect(try keyring.store.read(.messaging) == [1])
  }

  @Test func `a missing bus, service or collection is reported as unavailable`() throws {
    let nowhere = SecretServiceStore(
      home: keyring.home, busAddress: "unix:path=\(keyring.folder)/none")
    #expect(code { _ = try nowhere.read(.messaging) } == .storeUnavailable)
    #expect(code { _ = try nowhere.ids() } == .storeUnavailable)
    #expect(code { _ = try keyring.store.read(.messaging) } == .storeUnavailable)
    #expect(code { try keyring.store.write([1], for: .messaging) } == .storeUnavailable)
  }

  @Test func `a keyring without a collection is unavailable, and none is created`() throws {
    try keyring.startWithoutCollection()
    #expect(code { _ = try keyring.store.read(.messaging) } == .storeUnavailable)
    #expect(code { try keyring.store.write([1], for: .messaging) } == .storeUnavailable)
  }

  /// The process that dies in the middle of a write.
  enum Death: CaseIterable, Sendable {
    case service, bus
  }

  @Test(arguments: Death.allCases)
  func `the death of the service or bus during a write is reported and leaves the old vault`(
    death: Death
  ) async throws {
    try startWithVault()
    // From here on the service accepts calls but answers none.
    keyring.suspendKeyring()
    let store = keyring.store
    let write = Task.detached { code { try store.write([2], for: .messaging) } }
    // Nothing shows that the write waits for an answer.
    try await Task.sleep(for: .milliseconds(200))
    if death == .bus { keyring.stopBus() }
    keyring.stopKeyring()
    let failure = await write.value
    #expect(failure == .storeUnavailable || failure == .writeFailed)
    #expect(code { _ = try keyring.store.read(.messaging) } == .storeUnavailable)
    if death == .bus { try keyring.startBus() }
    try keyring.startUnlocked()
    #expect(try keyring.store.read(.messaging) == [1])
  }

  @Test func `the end of the bus does not end the process, and a new bus is found`() throws {
    try startWithVault()
    keyring.stopKeyring()
    keyring.stopBus()
    #expect(code { _ = try keyring.store.read(.messaging) } == .storeUnavailable)
    try keyring.startBus()
    try keyring.startUnlocked()
    #expect(try keyring.store.read(.messaging) == [1])
  }

  @Test func `a written vault survives a kill of the service`() throws {
    try keyring.startUnlocked()
    try keyring.store.prepare()
    for number: UInt8 in 1...5 {
      try keyring.store.write([number], for: .messaging)
      if number == 3 { _ = try keyring.store.retire(.messaging) }
      keyring.stopKeyring()
      try keyring.startUnlocked()
      #expect(try keyring.store.read(.messaging) == (number == 3 ? nil : [number]))
    }
  }

  @Test func `an unfinished vault counts as absent, and the next write replaces it`() throws {
    try keyring.startUnlocked()
    _ = try secretTool(
      ["store", "--label=unfinished"] + attributes("unfinished", "messaging"), input: [0x61])
    #expect(try keyring.store.read(.messaging) == nil)
    #expect(try keyring.store.ids() == [])
    try keyring.store.prepare()
    try keyring.store.write([1], for: .messaging)
    #expect(try keyring.store.ids() == [.messaging])
    #expect(try secretTool(["lookup"] + attributes("unfinished", "messaging")) == nil)
  }

  @Test func `two items for the same vault are refused, and both stay`() throws {
    try startWithVault()
    let more = attributes("vault", "messaging") + ["more", "attributes"]
    _ = try secretTool(["store", "--label=another"] + more, input: [0x62])
    #expect(code { _ = try keyring.store.read(.messaging) } == .unreadable)
    #expect(code { try keyring.store.write([2], for: .messaging) } == .writeFailed)
    #expect(code { _ = try keyring.store.retire(.messaging) } == .writeFailed)
    #expect(try secretTool(["lookup"] + more) == [0x62])
  }

  @Test func `a vault that is too large for the bus is refused with its size and not replaced`()
    throws
  {
    let keyring = try PrivateKeyring(maximumMessageByteCount: 2 << 20)
    try keyring.startUnlocked()
    try keyring.store.prepare()
    try keyring.store.write([1], for: .messaging)
    let error = #expect(throws: VaultError.self) {
      try keyring.store.write([UInt8](repeating: 0x61, count: 3 << 20), for: .messaging)
    }
    #expect(error?.code == .writeFailed)
    #expect(error?.hint?.contains("3145728 bytes") == true)
    #expect(try keyring.store.read(.messaging) == [1])
  }

  @Test func `homes and applications do not see each other's vaults`() throws {
    try startWithVault()
    let otherHome = SecretServiceStore(
      home: keyring.folder.appending("other"), busAddress: keyring.busAddress)
    let otherApplication = SecretServiceStore(
      application: "other", home: keyring.home, busAddress: keyring.busAddress)
    for store in [otherHome, otherApplication] {
      #expect(try store.read(.messaging) == nil)
      #expect(try store.ids() == [])
    }
    try #require(symlink(keyring.home.string, keyring.folder.appending("link").string) == 0)
    for path in ["x/../home", "link"] {
      let sameHome = SecretServiceStore(
        home: keyring.folder.appending(path), busAddress: keyring.busAddress)
      #expect(try sameHome.read(.messaging) == [1], "\(path)")
    }
  }
}

/// The error code of an operation; nil when it succeeds.
func code(_ body: () throws -> Void) -> VaultError.Code? {
  do {
    try body()
    return nil
  } catch let error as VaultError {
    return error.code
  } catch {
    Issue.record("not a VaultError: \(error)")
    return nil
  }
}
