import DataVault
import DataVaultTesting
import FileLayer
import Foundation
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

@Suite struct FixtureTests {
  private func vault(_ name: String, in directory: FilePath) async throws -> Vault {
    let store = InMemoryVaultStore()
    let id = try VaultID(name)
    store[id] = try VaultFixtures.read(name, in: directory)
    return try await Vault.get(id, in: store)
  }

  @Test(arguments: VaultFixtures.positives)
  func `a vault of version 1 opens`(fixture: VaultFixtures.Positive) async throws {
    for kind in fixture.kinds {
      let vault = try await vault(fixture.name, in: VaultFixtures.positiveDirectory)
      await expect(.wrongPassword) { try await vault.unlock(with: VaultFixtures.wrongSecret(kind)) }
      try await vault.unlock(with: fixture.secret(kind))
      try await expectContents(of: vault, fixture)
    }
  }

  private func expectContents(of vault: Vault, _ fixture: VaultFixtures.Positive) async throws {
    let status = try await vault.status()
    #expect(status.isSecured == !fixture.isStandard)
    #expect(status.isAuthenticated)
    switch fixture.name {
    case "items":
      #expect(try await vault.itemNames().count == 4)
      #expect(try await vault.text("escapes \" \\ \n ä😀") == "quotes \" \\ / and \n\t\u{0} and ä😀")
      let bytes = try await vault.item("every byte", kind: .binary).bytes.array()
      #expect(bytes == Array(0...255))
    case "policy":
      #expect(try await vault.policy() == VaultFixtures.policy)
    case "database-creating", "database-bound", "database-pending-key":
      #expect(status.binding?.databaseID == VaultFixtures.databaseID)
      #expect(status.binding?.state == (fixture.name == "database-creating" ? .creating : .bound))
      let keys = try await vault.databaseKeys()
      let hasPending = keys.pending != nil
      #expect(hasPending == (fixture.name == "database-pending-key"))
    default:
      #expect(try await vault.itemNames().isEmpty)
      #expect(status.binding == nil)
    }
  }

  @Test(
    arguments: Exhaustive.sample(
      of: VaultFixtures.names(in: VaultFixtures.negativeDirectory).filter {
        !VaultFixtures.idsOfNoVault.contains($0)
      }, oneIn: 3))
  func `a vault with one fault is refused`(name: String) async throws {
    let vault = try await vault(name, in: VaultFixtures.negativeDirectory)
    let refusal = await code {
      try await vault.unlock(with: VaultFixtures.secret(VaultFixtures.kind(ofNegative: name)))
    }
    #expect(refusal == (name.hasSuffix("-version") ? .newerVersion : .damaged))
  }

  @Test(arguments: VaultFixtures.idsOfNoVault)
  func `a vault whose id no vault can have is damaged`(name: String) async throws {
    let path = VaultFixtures.negativeDirectory.appending("\(name).vault")
    #expect(await code { _ = try await Vault.loadExportedVault(at: path) } == .damaged)
  }

  @Test(
    .enabled(if: JoseReader.isAvailable, JoseReader.skipReason),
    .enabled(if: Exhaustive.isRequested, "takes a minute and 70 MB: set DATAVAULT_EXHAUSTIVE=1"))
  func `a vault that is only too large is refused, also by the reference reader`() async throws {
    try JoseReader.removeChecks(of: "sizes")
    let home = TemporaryHome()
    try JoseReader.makeLargeVaults(in: home.path)
    let names = VaultFixtures.names(in: home.path)
    #expect(names.count == 4)
    for name in names {
      let store = InMemoryVaultStore()
      let id = try VaultID(name)
      store[id] = try LinuxFileSystem().read(
        home.path.appending("\(name).vault"), maximumByteCount: 44 << 20)
      let vault = try await Vault.get(id, in: store)
      await expect(.damaged) { try await vault.unlock(with: VaultFixtures.secret(.password)) }
    }
  }

  @Test(
    .enabled(if: JoseReader.isAvailable, JoseReader.skipReason),
    arguments: ["databases", "vaults", "homes", "records"])
  func `each check of a reference reader has a fixture that only it refuses`(kind: String) throws {
    #expect(throws: Never.self) { try JoseReader.removeChecks(of: kind) }
  }

  @Test func `no fixture is missing`() throws {
    let positives = VaultFixtures.names(in: VaultFixtures.positiveDirectory)
    #expect(
      Set(positives)
        == Set(VaultFixtures.positives.map(\.name) + ["from-joserfc", "from-joserfc-slots"]))
    let rules = BrokenRule.all.map(\.name).filter { !BrokenRule.unkept.contains($0) }
    let negatives = VaultFixtures.names(in: VaultFixtures.negativeDirectory)
    #expect(Set(rules).isSubset(of: negatives))
    #expect(negatives.count == rules.count + 21)
  }

  @Test func `a vault that joserfc wrote opens`() async throws {
    let vault = try await vault("from-joserfc", in: VaultFixtures.positiveDirectory)
    try await vault.unlock(with: credentials(VaultFixtures.password))
    #expect(try await vault.text("ä\n") == "from \"Python\"")
  }

  @Test(arguments: [VaultStatus.Slot.Kind.password, .recoveryCode, .keyFile])
  func `a vault that joserfc wrote opens by each slot`(kind: VaultStatus.Slot.Kind) async throws {
    let vault = try await vault("from-joserfc-slots", in: VaultFixtures.positiveDirectory)
    try await vault.unlock(with: VaultFixtures.secret(kind))
    #expect(try await vault.text("a") == "by any slot")
    #expect(
      try await vault.status().slotIdentifiers == ["password", "recovery:judge", "keyfile:judge"])
  }

  @Test(
    .enabled(if: JoseReader.isAvailable, JoseReader.skipReason),
    arguments: Exhaustive.sample(of: VaultFixtures.positives, oneIn: 3))
  func `joserfc opens each vault of version 1 by each of its slots`(
    fixture: VaultFixtures.Positive
  ) throws {
    let home = TemporaryHome()
    let files = try secretFiles(in: home)
    for kind in fixture.kinds {
      var options: [String: FilePath] = [:]
      switch kind {
      case .password where fixture.isStandard:
        options = [
          "--password": try home.write("standard-password", "datavault-standard-password".utf8),
          "--salt": try home.write("standard-salt", "datavault-standard-salt".utf8),
        ]
      case .password:
        options = ["--password": files["--password"]!]
        options["--salt"] = try fixture.salt.map { try home.write("salt", $0.utf8) }
      case .recoveryCode: options = ["--recovery-code": files["--recovery-code"]!]
      default: options = ["--key-file": files["--key-file"]!]
      }
      let seen = try JoseReader.open(
        VaultFixtures.positiveDirectory.appending("\(fixture.name).vault"), by: options)
      #expect((seen["clear"] as? [String: Any])?["vault"] as? String == fixture.name)
    }
  }

  /// The reference reader's options for each kind of slot.
  private func secretFiles(in home: TemporaryHome) throws -> [String: FilePath] {
    [
      "--password": try home.write("password", VaultFixtures.password.utf8),
      "--recovery-code": try home.write("code", SlotSecrets.codeText.utf8),
      "--key-file": try home.write("key", SlotSecrets.keyFile),
    ]
  }

  /// Makes the missing fixtures and never changes an existing one.
  @Test(
    .enabled(
      if: ProcessInfo.processInfo.environment["DATAVAULT_MAKE_FIXTURES"] != nil,
      "fixtures are made only on demand: DATAVAULT_MAKE_FIXTURES=1"))
  func `fixtures are made`() async throws {
    var parameters = VaultParameters()
    parameters.iterationCount = 220_000
    for fixture in VaultFixtures.positives {
      let store = InMemoryVaultStore()
      let id = try VaultID(fixture.name)
      let vault =
        if fixture.isStandard {
          try await Vault.create(id, in: store, credentials: .standard, parameters: parameters)
        } else {
          try await Vault.create(
            id, in: store, credentials: credentials(VaultFixtures.password, salt: fixture.salt),
            parameters: parameters)
        }
      try await fixture.make(vault)
      try write(try #require(store[id]), fixture.name, in: VaultFixtures.positiveDirectory)
    }
    for (name, bytes) in try VaultFixtures.negatives() {
      try write(bytes, name, in: VaultFixtures.negativeDirectory)
    }
    let home = TemporaryHome()
    let slots = try secretFiles(in: home)
    try writeWithJoserfc(
      "from-joserfc", slots: slots.filter { $0.key == "--password" },
      items: #"{"ä\n":{"string":"from \"Python\""}}"#)
    try writeWithJoserfc(
      "from-joserfc-slots", slots: slots, items: #"{"a":{"string":"by any slot"}}"#)
  }

  private func writeWithJoserfc(_ name: String, slots: [String: FilePath], items: String) throws {
    let path = VaultFixtures.positiveDirectory.appending("\(name).vault")
    guard try LinuxFileSystem().status(of: path) == nil else { return }
    try JoseReader.write(path, slots: slots, items: items)
  }

  private func write(_ bytes: [UInt8], _ name: String, in directory: FilePath) throws {
    try LinuxFileSystem().createDirectory(
      directory, permissions: [.ownerReadWriteExecute, .groupReadExecute, .otherReadExecute])
    let path = directory.appending("\(name).vault")
    guard try LinuxFileSystem().status(of: path) == nil else { return }
    try LinuxFileSystem().replace(
      path, with: bytes, permissions: [.ownerReadWrite, .groupRead, .otherRead], owner: nil)
  }
}
