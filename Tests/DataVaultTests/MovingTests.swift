import DataVault
import DataVaultTesting
import FileLayer
import Glibc
import SystemPackage
import Testing

@Suite struct MovingTests {
  let home = TemporaryHome()
  let memory = InMemoryVaultStore()
  var file: FilePath { home.path.appending("exported") }

  private func make(_ password: String = "p") async throws -> [UInt8] {
    let vault = try await FastTestVault.create(
      .messaging, in: home.store, credentials: credentials(password))
    try await vault.setText("value", for: "name")
    return try home.bytes()
  }

  @Test func `a vault is copied byte for byte, and the original stays`() async throws {
    let bytes = try await make()
    try await Vault.copy(.messaging, from: home.store, to: memory)
    #expect(memory[.messaging] == bytes)
    #expect(try home.bytes() == bytes)
    let vault = try await FastTestVault.get(.messaging, in: memory)
    try await vault.unlock(with: credentials("p"))
    #expect(try await vault.text("name") == "value")
  }

  @Test func `a vault is moved whole, and is then only there`() async throws {
    let bytes = try await make()
    try await Vault.move(.messaging, from: home.store, to: memory)
    #expect(memory[.messaging] == bytes)
    #expect(try home.store.read(.messaging) == nil)
    try await Vault.move(.messaging, from: memory, to: home.store)
    #expect(try home.bytes() == bytes)
    #expect(memory[.messaging] == nil)
  }

  @Test func `no vault is ever replaced, nor lost by a move to where it is`() async throws {
    let bytes = try await make()
    memory[.messaging] = Array("another".utf8)
    for target: any VaultStore in [memory, FileVaultStore(home: home.path)] {
      #expect(
        await code { try await Vault.copy(.messaging, from: home.store, to: target) }
          == .alreadyExists)
      #expect(
        await code { try await Vault.move(.messaging, from: home.store, to: target) }
          == .alreadyExists)
    }
    #expect(memory[.messaging] == Array("another".utf8))
    #expect(try home.bytes() == bytes)
  }

  @Test(arguments: [VaultError.Code.storeLocked, .storeUnavailable, .unreadable])
  func `a target that cannot be looked into is not taken for empty`(
    code wanted: VaultError.Code
  ) async throws {
    let bytes = try await make()
    memory.failure = VaultError(wanted, "on purpose")
    #expect(
      await code { try await Vault.move(.messaging, from: home.store, to: memory) } == wanted)
    #expect(await code { try await Vault.move(.messaging, from: memory, to: home.store) } == wanted)
    #expect(try home.bytes() == bytes)
  }

  @Test func `a damaged vault goes nowhere`() async throws {
    var bytes = try await make()
    bytes[bytes.count / 2] ^= 1
    try home.put(bytes)
    #expect(
      await code { try await Vault.move(.messaging, from: home.store, to: memory) } == .damaged)
    #expect(
      await code { try await Vault.export(.messaging, from: home.store, to: file) } == .damaged)
    #expect(memory[.messaging] == nil)
    #expect(try home.bytes() == bytes)
    #expect(try LinuxFileSystem().status(of: file) == nil)
  }

  @Test func `a copy that the target does not keep is said, and the original stays`() async throws {
    _ = try await make()
    let cutting = FaultyStore(.cutsOff)
    let vault = try await FastTestVault.get(.messaging, in: home.store)
    try await vault.unlock(with: credentials("p"))
    try await vault.setText(String(repeating: "x", count: 100_000), for: "long")
    let long = try home.bytes()
    #expect(
      await code { try await Vault.move(.messaging, from: home.store, to: cutting) }
        == .writeFailed)
    #expect(try home.bytes() == long)
  }

  @Test func `an exported vault is a file of its owner's, and becomes a vault again`() async throws
  {
    let bytes = try await make()
    try await Vault.export(.messaging, from: home.store, to: file)
    let status = try #require(try LinuxFileSystem().status(of: file))
    #expect(status.permissions == [.ownerReadWrite])
    #expect(try LinuxFileSystem().read(file, maximumByteCount: 1 << 20) == bytes)
    let exported = try await Vault.exported(at: file)
    #expect(exported.id == .messaging)
    #expect(exported.isSecured)
    try await Vault.importVault(exported, into: memory)
    #expect(memory[.messaging] == bytes)
    #expect(await code { try await Vault.importVault(exported, into: memory) } == .alreadyExists)
  }

  @Test func `an export replaces nothing, and leaves nothing beside it`() async throws {
    _ = try await make()
    try LinuxFileSystem().make(file, with: [1])
    #expect(
      await code { try await Vault.export(.messaging, from: home.store, to: file) }
        == .alreadyExists)
    #expect(try LinuxFileSystem().read(file, maximumByteCount: 10) == [1])
    #expect(try LinuxFiles.entries(home.path) == ["exported", "vaults"])
    #expect(
      await code {
        try await Vault.export(
          .messaging, from: home.store, to: home.path.appending("none").appending("file"))
      } == .writeFailed)
  }

  @Test func `an export beside a foreign file of its side name leaves that file alone`()
    async throws
  {
    let bytes = try await make()
    let foreign = home.path.appending(".exported.new")
    try LinuxFileSystem().make(foreign, with: [1])
    try await Vault.export(.messaging, from: home.store, to: file)
    #expect(try LinuxFileSystem().read(foreign, maximumByteCount: 10) == [1])
    #expect(try LinuxFileSystem().read(file, maximumByteCount: 1 << 20) == bytes)
    #expect(try LinuxFiles.entries(home.path) == [".exported.new", "exported", "vaults"])
  }

  @Test func `what a crash has left of an export goes with the next one`() async throws {
    let bytes = try await make()
    try LinuxFileSystem().make(home.path.appending(".exported.datavault.new"), with: [1])
    try await Vault.export(.messaging, from: home.store, to: file)
    #expect(try LinuxFileSystem().read(file, maximumByteCount: 1 << 20) == bytes)
    #expect(try LinuxFiles.entries(home.path) == ["exported", "vaults"])
  }

  @Test func `what is no vault is not imported`() async throws {
    #expect(await code { _ = try await Vault.exported(at: file) } == .doesNotExist)
    #expect(await code { _ = try await Vault.exported(at: home.path) } == .damaged)
    try LinuxFileSystem().make(file, with: Array("no vault".utf8))
    #expect(await code { _ = try await Vault.exported(at: file) } == .damaged)
    symlink(file.string, home.path.appending("link").string)
    #expect(
      await code { _ = try await Vault.exported(at: home.path.appending("link")) } == .unreadable)
  }

  @Test func `under another id the vault opens with the same password`() async throws {
    _ = try await make()
    try await Vault.export(.messaging, from: home.store, to: file)
    let exported = try await Vault.exported(at: file)
    let other = try VaultID("other")
    #expect(
      await code {
        _ = try await Vault.importVault(
          exported, as: other, with: .password(credentials("wrong")), into: memory,
          parameters: .cheap)
      } == .wrongPassword)
    #expect(memory[other] == nil)
    let renamed = try await Vault.importVault(
      exported, as: other, with: .password(credentials("p")), into: memory, parameters: .cheap)
    #expect(try await renamed.text("name") == "value")
    let vault = try await FastTestVault.get(other, in: memory)
    try await vault.unlock(with: credentials("p"))
    #expect(try await vault.text("name") == "value")
    #expect(
      await code {
        _ = try await Vault.importVault(
          exported, as: other, with: .password(credentials("p")), into: memory, parameters: .cheap)
      } == .alreadyExists)
  }

  @Test func `under another id the vault has nothing of the attempts on one before it`()
    async throws
  {
    _ = try await make()
    try await Vault.export(.messaging, from: home.store, to: file)
    let other = try VaultID("other")
    let left = #"{"version":1,"failures":40,"retryAt":9007199254740991,"openedAt":null}"#
    try memory.writeAttempts(Array("\(left)\n".utf8), for: other, durably: true)
    _ = try await Vault.importVault(
      Vault.exported(at: file), as: other, with: .password(credentials("p")), into: memory,
      parameters: .cheap)
    let vault = try await FastTestVault.get(other, in: memory)
    #expect(try await vault.status().failedAttemptCount == 0)
    try await vault.unlock(with: credentials("p"))
  }

  @Test func `verify tells what needs keys from what does not`() async throws {
    let bytes = try await make()
    let vault = try await FastTestVault.get(.messaging, in: home.store)
    let closed = try await vault.verify()
    #expect(closed.byteCount == bytes.count)
    #expect(closed.opened == nil)
    try await vault.unlock(with: credentials("p"))
    let opened = try await vault.verify()
    #expect(opened.opened?.itemCount == 1)
    #expect(opened.opened?.generation == 2)
  }

  @Test func `verify finds what only keys can find`() async throws {
    var forge = VaultFileBuilder()
    try home.put(try forge.file())
    let vault = try await FastTestVault.get(.messaging, in: home.store)
    try await vault.unlock(with: credentials("password"))
    #expect(try await vault.verify().opened?.itemCount == 1)
    forge.plaintext = "{}"
    try home.put(try forge.file())
    #expect(await code { _ = try await vault.verify() } == .damaged)
    let closed = try await FastTestVault.get(.messaging, in: home.store)
    #expect(try await closed.verify().opened == nil)
  }
}
