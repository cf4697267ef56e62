import DataVault
import DataVaultTesting
import FileLayer
import Glibc
import SystemPackage
import TestSupport
import Testing

@Suite struct MovingTests {
  let home = TemporaryHome()
  let memory = InMemoryVaultStore()
  var file: FilePath { home.path.appending("exported") }

  private func make(_ password: String = "p") async throws -> [UInt8] {
    let vault = try await home.store.createVault(with: credentials(password))
    try await vault.setText("value", for: "name")
    return try home.bytes()
  }

  /// Imports the exported file into memory under another id.
  @discardableResult
  private func importOther(_ password: String = "p") async throws(VaultError) -> Vault {
    try await Vault.importVault(
      Vault.loadExportedVault(at: file), as: VaultID("other"),
      with: .password(credentials(password)), into: memory, parameters: .cheap)
  }

  @Test func `a vault is copied byte for byte, and the original stays`() async throws {
    let bytes = try await make()
    try await Vault.copy(.messaging, from: home.store, to: memory)
    #expect(memory[.messaging] == bytes)
    #expect(try home.bytes() == bytes)
    let vault = try await memory.openVault(with: credentials("p"))
    #expect(try await vault.text("name") == "value")
  }

  @Test func `a moved vault is complete and exists only at its target`() async throws {
    let bytes = try await make()
    try await Vault.move(.messaging, from: home.store, to: memory)
    #expect(memory[.messaging] == bytes)
    #expect(try home.store.read(.messaging) == nil)
    try await Vault.move(.messaging, from: memory, to: home.store)
    #expect(try home.bytes() == bytes)
    #expect(memory[.messaging] == nil)
  }

  @Test func `copy and move never replace a vault, and a move onto itself loses none`() async throws
  {
    let bytes = try await make()
    memory[.messaging] = Array("another".utf8)
    for target: any VaultStore in [memory, FileVaultStore(home: home.path)] {
      await expect(.alreadyExists) {
        try await Vault.copy(.messaging, from: home.store, to: target)
      }
      await expect(.alreadyExists) {
        try await Vault.move(.messaging, from: home.store, to: target)
      }
    }
    #expect(memory[.messaging] == Array("another".utf8))
    #expect(try home.bytes() == bytes)
  }

  @Test(arguments: [VaultError.Code.storeLocked, .storeUnavailable, .unreadable])
  func `a target that cannot be read is not taken for empty`(
    code wanted: VaultError.Code
  ) async throws {
    let bytes = try await make()
    memory.failure = VaultError(wanted, "on purpose")
    #expect(await code { try await Vault.move(.messaging, from: home.store, to: memory) } == wanted)
    #expect(await code { try await Vault.move(.messaging, from: memory, to: home.store) } == wanted)
    #expect(try home.bytes() == bytes)
  }

  @Test func `a damaged vault is neither moved nor exported`() async throws {
    var bytes = try await make()
    bytes[bytes.count / 2] ^= 1
    try home.put(bytes)
    await expect(.damaged) { try await Vault.move(.messaging, from: home.store, to: memory) }
    await expect(.damaged) { try await Vault.export(.messaging, from: home.store, to: file) }
    #expect(memory[.messaging] == nil)
    #expect(try home.bytes() == bytes)
    #expect(try LinuxFileSystem().status(of: file) == nil)
  }

  @Test func `move() fails if the target stores other bytes, and the original stays`() async throws
  {
    _ = try await make()
    let cutting = FaultyStore(.cutsOff)
    let vault = try await home.store.openVault(with: credentials("p"))
    try await vault.setText(String(repeating: "x", count: 100_000), for: "long")
    let long = try home.bytes()
    await expect(.writeFailed) { try await Vault.move(.messaging, from: home.store, to: cutting) }
    #expect(try home.bytes() == long)
  }

  @Test func `an exported vault is a private file that can be imported again`() async throws {
    let bytes = try await make()
    try await Vault.export(.messaging, from: home.store, to: file)
    let status = try #require(try LinuxFileSystem().status(of: file))
    #expect(status.permissions == [.ownerReadWrite])
    #expect(try LinuxFileSystem().read(file, maximumByteCount: 1 << 20) == bytes)
    let exported = try await Vault.loadExportedVault(at: file)
    #expect(exported.id == .messaging)
    #expect(exported.isSecured)
    try await Vault.importVault(exported, into: memory)
    #expect(memory[.messaging] == bytes)
    #expect(await code { try await Vault.importVault(exported, into: memory) } == .alreadyExists)
  }

  @Test func `an export replaces no file and leaves no temporary file`() async throws {
    _ = try await make()
    try LinuxFileSystem().make(file, with: [1])
    await expect(.alreadyExists) { try await Vault.export(.messaging, from: home.store, to: file) }
    #expect(try LinuxFileSystem().read(file, maximumByteCount: 10) == [1])
    #expect(try LinuxFileSystem().entries(of: home.path) == ["exported", "vaults"])
    await expect(.writeFailed) {
      try await Vault.export(
        .messaging, from: home.store, to: home.path.appending("none").appending("file"))
    }
  }

  @Test func `an export does not touch a foreign file named like a temporary file`() async throws {
    let bytes = try await make()
    let foreign = home.path.appending(".exported.new")
    try LinuxFileSystem().make(foreign, with: [1])
    try await Vault.export(.messaging, from: home.store, to: file)
    #expect(try LinuxFileSystem().read(foreign, maximumByteCount: 10) == [1])
    #expect(try LinuxFileSystem().read(file, maximumByteCount: 1 << 20) == bytes)
    let names = try LinuxFileSystem().entries(of: home.path)
    #expect(names == [".exported.new", "exported", "vaults"])
  }

  @Test func `the next export removes the temporary file of a crashed one`() async throws {
    let bytes = try await make()
    try LinuxFileSystem().make(home.path.appending(".exported.datavault.new"), with: [1])
    try await Vault.export(.messaging, from: home.store, to: file)
    #expect(try LinuxFileSystem().read(file, maximumByteCount: 1 << 20) == bytes)
    #expect(try LinuxFileSystem().entries(of: home.path) == ["exported", "vaults"])
  }

  @Test func `a missing file, a directory, other bytes and a symbolic link are not imported`()
    async throws
  {
    #expect(await code { _ = try await Vault.loadExportedVault(at: file) } == .doesNotExist)
    #expect(await code { _ = try await Vault.loadExportedVault(at: home.path) } == .damaged)
    try LinuxFileSystem().make(file, with: Array("no vault".utf8))
    #expect(await code { _ = try await Vault.loadExportedVault(at: file) } == .damaged)
    symlink(file.string, home.path.appending("link").string)
    await expect(.unreadable) {
      _ = try await Vault.loadExportedVault(at: home.path.appending("link"))
    }
  }

  @Test func `a damaged file that is imported under another id is named by its path`() async throws
  {
    var builder = VaultFileBuilder()
    builder.plaintext = "{}"
    try LinuxFileSystem().make(file, with: try builder.file())
    let error = await #expect(throws: VaultError.self) { try await importOther("password") }
    #expect(error?.code == .damaged)
    #expect(error?.message.hasPrefix(file.string) == true, "\(error?.message ?? "")")
  }

  @Test func `a vault imported under another id opens with the same password`() async throws {
    _ = try await make()
    try await Vault.export(.messaging, from: home.store, to: file)
    let other = try VaultID("other")
    await expect(.wrongPassword) { try await importOther("wrong") }
    #expect(memory[other] == nil)
    #expect(try await importOther().text("name") == "value")
    let vault = try await FastTestVault.get(other, in: memory)
    try await vault.unlock(with: credentials("p"))
    #expect(try await vault.text("name") == "value")
    await expect(.alreadyExists) { try await importOther() }
  }

  @Test func `a vault imported under another id ignores attempts on an earlier vault`()
    async throws
  {
    _ = try await make()
    try await Vault.export(.messaging, from: home.store, to: file)
    let other = try VaultID("other")
    let left = #"{"version":1,"failures":40,"retryAt":9007199254740991,"openedAt":null}"#
    try memory.writeAttempts(Array("\(left)\n".utf8), for: other, durably: true)
    try await importOther()
    let vault = try await FastTestVault.get(other, in: memory)
    #expect(try await vault.status().failedAttemptCount == 0)
    try await vault.unlock(with: credentials("p"))
  }

  @Test func `verify() reports the generation and items only for an unlocked vault`() async throws {
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

  @Test func `a write at the greatest generation leaves the vault readable`() async throws {
    var builder = VaultFileBuilder()
    builder.plaintext = builder.plaintext.replacing(
      #""generation":1,"#, with: #""generation":9007199254740991,"#)
    try home.put(try builder.file())
    let vault = try await home.store.openVault(with: credentials("password"))
    try await vault.setText("text", for: "new")
    let again = try await home.store.openVault(with: credentials("password"))
    #expect(try await again.verify().opened?.generation == 1 << 53 - 1)
    #expect(try await again.verify().opened?.itemCount == 2)
  }

  @Test func `verify() with keys finds damage that needs the keys`() async throws {
    var builder = VaultFileBuilder()
    try home.put(try builder.file())
    let vault = try await home.store.openVault(with: credentials("password"))
    #expect(try await vault.verify().opened?.itemCount == 1)
    builder.plaintext = "{}"
    try home.put(try builder.file())
    #expect(await code { _ = try await vault.verify() } == .damaged)
    let closed = try await FastTestVault.get(.messaging, in: home.store)
    #expect(try await closed.verify().opened == nil)
  }
}
