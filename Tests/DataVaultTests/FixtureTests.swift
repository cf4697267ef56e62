import DataVault
import DataVaultTesting
import FileLayer
import Foundation
import SystemPackage
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
  func `a vault of version 0 opens`(fixture: VaultFixtures.Positive) async throws {
    let vault = try await vault(fixture.name, in: VaultFixtures.positiveDirectory)
    #expect(await code { try await vault.unlock(with: credentials("wrong")) } == .wrongPassword)
    try await fixture.unlock(vault)
    let status = try await vault.status()
    #expect(status.isSecured == !fixture.isStandard)
    #expect(status.isAuthenticated)
    switch fixture.name {
    case "items":
      #expect(try await vault.itemNames().count == 4)
      #expect(
        try await vault.text("escapes \" \\ \n ä😀") == "quotes \" \\ / and \n\t\u{0} and ä😀")
      let bytes = try await vault.item("every byte", kind: .binary).bytes.array()
      #expect(bytes == Array(0...255))
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

  @Test(arguments: VaultFixtures.names(in: VaultFixtures.negativeDirectory))
  func `a vault with one fault is refused`(name: String) async throws {
    let vault = try await vault(name, in: VaultFixtures.negativeDirectory)
    let refusal = await code {
      try await vault.unlock(with: credentials(VaultFixtures.password))
    }
    #expect(refusal == (name == "newer-version" ? .newerVersion : .damaged))
  }

  @Test func `no fixture is missing`() throws {
    let positives = VaultFixtures.names(in: VaultFixtures.positiveDirectory)
    #expect(Set(positives) == Set(VaultFixtures.positives.map(\.name) + ["from-joserfc"]))
    let rules = BrokenRule.all.map(\.name).filter { $0 != "item-too-large" }
    let negatives = VaultFixtures.names(in: VaultFixtures.negativeDirectory)
    #expect(Set(rules).isSubset(of: negatives))
    #expect(negatives.count == rules.count + 11)
  }

  @Test func `a vault that joserfc wrote opens`() async throws {
    let vault = try await vault("from-joserfc", in: VaultFixtures.positiveDirectory)
    try await vault.unlock(with: credentials(VaultFixtures.password))
    #expect(try await vault.text("ä\n") == "from \"Python\"")
  }

  @Test(
    .enabled(if: JoseJudge.isAvailable, JoseJudge.skipReason), arguments: VaultFixtures.positives)
  func `joserfc opens each vault of version 0`(fixture: VaultFixtures.Positive) throws {
    let home = TemporaryHome()
    func file(_ name: String, _ text: String) throws -> FilePath {
      let path = home.path.appending(name)
      try Data(text.utf8).write(to: URL(fileURLWithPath: path.string))
      return path
    }
    let standard = "datavault-standard-"
    let salt = fixture.isStandard ? standard + "salt" : fixture.salt
    let seen = try JoseJudge.open(
      VaultFixtures.positiveDirectory.appending("\(fixture.name).vault"),
      password: try file(
        "password", fixture.isStandard ? standard + "password" : VaultFixtures.password),
      salt: try salt.map { try file("salt", $0) })
    #expect((seen["clear"] as? [String: Any])?["vault"] as? String == fixture.name)
  }

  /// Makes the fixtures that are missing; never changes one that is there.
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
    let password = home.path.appending("password")
    try write(Array(VaultFixtures.password.utf8), at: password)
    let path = VaultFixtures.positiveDirectory.appending("from-joserfc.vault")
    guard try LinuxFileSystem().status(of: path) == nil else { return }
    try JoseJudge.write(
      path, password: password, items: #"{"ä\n":{"string":"from \"Python\""}}"#)
  }

  private func write(_ bytes: [UInt8], _ name: String, in directory: FilePath) throws {
    try LinuxFileSystem().createDirectory(
      directory, permissions: [.ownerReadWriteExecute, .groupReadExecute, .otherReadExecute])
    let path = directory.appending("\(name).vault")
    if try LinuxFileSystem().status(of: path) == nil { try write(bytes, at: path) }
  }

  private func write(_ bytes: [UInt8], at path: FilePath) throws {
    try LinuxFileSystem().replace(
      path, with: bytes, permissions: [.ownerReadWrite, .groupRead, .otherRead], owner: nil)
  }
}
