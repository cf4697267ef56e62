import Foundation
import PrivateKeyring
import SystemPackage
import TestSupport
import Testing

@testable import SecretServiceStore

/// `unlock --remember`, `--keyring` and `forget`, with a real GNOME Keyring on a bus of the test's own.
@Suite(.enabled(if: PrivateKeyring.isAvailable, Comment(rawValue: PrivateKeyring.skipReason)))
struct RememberCommandTests {
  private static let slot = "keyfile:keyring"
  private static let sessions: Comment = Keyrings.skipReason

  private let home: TestHome
  private let keyring: PrivateKeyring

  /// Makes the vault `v` with the item `name`, and an unlocked keyring.
  init() throws {
    home = try TestHome.fresh()
    keyring = try PrivateKeyring()
    try keyring.startUnlocked()
    try home.createVault()
    try home.unlocked("set", "v", "name", input: "value").expect(0)
  }

  private func run(_ arguments: String..., store: String = "file") throws -> Program {
    try home.run(arguments + ["--store", store], environment: keyring.environment)
  }

  /// Remembers `v`, without leaving a session.
  private func remember(store: String = "file") throws {
    try run("unlock", "v", "--remember", "--password-file", home.passwordFile, store: store)
      .expect(0)
    try run("lock", "v", store: store).expect(0)
  }

  private var homePath: String { URL(fileURLWithPath: home.path).resolvingSymlinksInPath().path }

  /// The attributes of the vault's key, as libsecret's tool takes them.
  private var attributes: [String] {
    ["application", "datavault", "home", homePath, "store", "file", "unlocks", "v"]
  }

  private func secretTool(_ arguments: [String], input: String = "") throws -> Program {
    try keyring.run(PrivateKeyring.secretToolProgram, arguments, input: Array(input.utf8))
  }

  private var storedKey: String { get throws { try secretTool(["lookup"] + attributes).text } }

  private func replaceStoredKey(by text: String) throws {
    let service = try SecretService(
      BusConnection(
        address: keyring.busAddress, service: SecretService.name, timeouts: .standard,
        mayContinue: nil))
    let item = try #require(try service.search(["unlocks": "v"]).unlocked.first)
    try service.setSecret(Array(text.utf8), of: item)
  }

  private func slots() throws -> String { try run("slots", "list", "v").text }

  @Test(.enabled(if: Keyrings.isAvailable, sessions))
  func `a remembered vault opens with the key that secret-tool sees in the keyring`() throws {
    try run("unlock", "v", "--remember", "--password-file", home.passwordFile).expect(0)
    #expect(try run("get", "v", "name").text == "value")
    try run("lock", "v").expect(0)
    try run("get", "v", "name").expect(77)
    #expect(try run("get", "v", "name", "--keyring").text == "value")
    try run("verify", "v", "--keyring").expect(0)
    #expect(try slots().contains(Self.slot))

    // The 32 bytes are the key file of the slot.
    let text = try storedKey
    #expect(text.wholeMatch(of: /[0-9a-f]{64}/) != nil)
    let digits = Array(text)
    let key = stride(from: 0, to: digits.count, by: 2).map {
      UInt8(String(digits[$0...$0 + 1]), radix: 16) ?? 0
    }
    let file = try home.folder.file("key", key)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
    #expect(try run("get", "v", "name", "--unlock-key-file", file).text == "value")
    let item = try secretTool(["search"] + attributes)
    #expect((item.text + item.errors).contains("DataVault: key of vault v"))
  }

  @Test(.enabled(if: Keyrings.isAvailable, sessions))
  func `the keyring receives the slot's key and never the password`() throws {
    try remember()
    let key = try storedKey
    // Every item of the keyring, with its secret, label and attributes.
    let found = try secretTool(["search", "--all", "application", "datavault"])
    let items = found.text + found.errors
    #expect(items.components(separatedBy: "secret = ").count == 2)
    #expect(key.count == 64 && items.contains(key))
    #expect(!items.contains(TestHome.password))
    let folder = keyring.folder.appending("user/data/keyrings").string
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
      let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(name)"))
      let text = String(decoding: bytes, as: UTF8.self)
      #expect(!text.contains(TestHome.password) && !text.contains(key), "\(name)")
    }
    for (name, bytes) in try home.contents() {
      #expect(!String(decoding: bytes, as: UTF8.self).contains(key), "\(name)")
    }
  }

  @Test(.enabled(if: Keyrings.isAvailable, sessions))
  func `remembering again keeps a key that opens the vault`() throws {
    try remember()
    let first = try storedKey
    try run("unlock", "v", "--remember", "--keyring").expect(0)
    try run("lock", "v").expect(0)
    #expect(try storedKey == first)
    #expect(try slots().components(separatedBy: Self.slot).count == 2)
    #expect(try run("get", "v", "name", "--keyring").text == "value")
    try run("slots", "remove", "v", "password", "--keyring")
      .expect(0, says: "only the key in the desktop's keyring now opens")
  }

  @Test(.enabled(if: Keyrings.isAvailable, sessions))
  func `a slot that has the keyring's name leaves the keyring as it was`() throws {
    try run(
      "slots", "add", "v", "keyring", "--recovery-code", "--password-file", home.passwordFile
    ).expect(0)
    try run("unlock", "v", "--remember", "--password-file", home.passwordFile)
      .expect(73, says: "unlocked vault 'v', but did not remember it", "recovery:keyring")
    try run("lock", "v").expect(0)
    #expect(try storedKey == "")
  }

  @Test(.enabled(if: Keyrings.isAvailable, sessions))
  func `rotate keeps the slot of the keyring with --keyring`() throws {
    try remember()
    try run("rotate", "v", "--password-file", home.passwordFile).expect(77, says: Self.slot)
    try run("rotate", "v", "--password-file", home.passwordFile, "--keyring").expect(0)
    #expect(try run("get", "v", "name", "--keyring").text == "value")
  }

  @Test(.enabled(if: Keyrings.isAvailable, sessions))
  func `forget removes the slot and the key, and opens the vault with that key`() throws {
    try remember()
    try run("forget", "v").expect(
      0,
      prints: "removed slot 'keyfile:keyring' of vault 'v' and its key in the desktop's keyring\n")
    #expect(try storedKey == "")
    #expect(try !slots().contains(Self.slot))
    try run("get", "v", "name", "--keyring").expect(77, says: "has no key", "--remember")
    try run("forget", "v").expect(0, prints: "neither")
    try run("forget", "absent").expect(66)
  }

  @Test(.enabled(if: Keyrings.isAvailable, sessions))
  func `forget removes what is left of a slot and a key`() throws {
    try remember()
    try run("slots", "remove", "v", Self.slot, "--password-file", home.passwordFile).expect(0)
    try run("forget", "v").expect(0, prints: "it had no slot")
    #expect(try storedKey == "")

    try remember()
    try secretTool(["clear"] + attributes).expect(0)
    try run("forget", "v").expect(77, says: "there is no terminal")
    try run("forget", "v", "--password-file", home.passwordFile)
      .expect(0, prints: "the desktop's keyring had no key of it")
    #expect(try !slots().contains(Self.slot))

    // A vault that is gone has left its key.
    try remember()
    try run("delete", "v", "--force").expect(0)
    try run("forget", "v").expect(0, prints: "it had no slot")
    try run("forget", "v").expect(66)
  }

  @Test(.enabled(if: Keyrings.isAvailable, sessions))
  func `forget --json reports what it removed`() throws {
    try remember()
    #expect(
      try run("forget", "v", "--json").text
        == #"{"removedKey":true,"removedSlot":true,"vault":"v"}"# + "\n")
  }

  @Test(.enabled(if: Keyrings.isAvailable, sessions))
  func `a key of an earlier slot is no attempt, and the next --remember replaces it`() throws {
    try remember()
    let before = try home.folder.bytes("home/vaults/v.vault")
    try run("forget", "v").expect(0)
    try remember()
    // As a kill between the keyring and the vault leaves them.
    try home.folder.file("home/vaults/v.vault", before)
    for _ in 0..<4 {
      try run("get", "v", "name", "--keyring").expect(77, says: "does not open", "--remember")
    }
    try run("status", "v").expect(0, prints: "failures   0 since then")
    try remember()
    #expect(try run("get", "v", "name", "--keyring").text == "value")

    try run("slots", "remove", "v", Self.slot, "--password-file", home.passwordFile).expect(0)
    try run("get", "v", "name", "--keyring").expect(66, says: "no longer has the slot")
    try remember()
    #expect(try run("get", "v", "name", "--keyring").text == "value")
  }

  @Test(.enabled(if: Keyrings.isAvailable, sessions))
  func `an item that holds no key is an error, and the next --remember replaces it`() throws {
    try remember()
    for text in [
      "", "short", String(repeating: "xy", count: 32), String(repeating: "0", count: 65),
    ] {
      try replaceStoredKey(by: text)
      #expect(try storedKey == text)
      try run("get", "v", "name", "--keyring").expect(77, says: "--remember")
    }
    try remember()
    #expect(try run("get", "v", "name", "--keyring").text == "value")
  }

  @Test(.enabled(if: Keyrings.isAvailable, sessions))
  func `a slot whose key another keyring has is not replaced before forget`() throws {
    try remember()
    try secretTool(["clear"] + attributes).expect(0)
    let before = try slots()
    try run("unlock", "v", "--remember", "--password-file", home.passwordFile)
      .expect(73, says: "not in this keyring", "datavault forget v")
    #expect(try slots() == before)
    #expect(try storedKey == "")
    try run("forget", "v", "--password-file", home.passwordFile).expect(0)
    try remember()
  }

  @Test(.enabled(if: Keyrings.isAvailable, sessions))
  func `each reason why the keyring gives no key has an error and a hint`() throws {
    try remember()
    let before = try home.contents()
    keyring.stopKeyring()
    // Without a prompter on this bus, the keyring stays locked.
    try keyring.startLocked()
    for command in [["get", "v", "name", "--keyring"], ["forget", "v"]] {
      try home.run(command, environment: keyring.environment)
        .expect(77, says: "the desktop's keyring is locked", "\nhint: ")
    }
    try run("unlock", "v", "--remember", "--password-file", home.passwordFile)
      .expect(77, says: "locked")
    keyring.stopKeyring()
    try run("get", "v", "name", "--keyring").expect(69, says: "not available", "\nhint: ")
    keyring.stopBus()
    try run("get", "v", "name", "--keyring").expect(69, says: "not available", "\nhint: ")
    // As in an ssh session.
    try home.run(
      "get", "v", "name", "--keyring",
      environment: ["DBUS_SESSION_BUS_ADDRESS": "", "XDG_RUNTIME_DIR": home.folder.url.path]
    ).expect(69, says: "there is no session bus", "\nhint: ")
    try run("unlock", "v", "--remember", "--password-file", home.passwordFile).expect(69)
    #expect(try home.contents() == before)
    // The slot is gone, and the error says that the key is not.
    try run("forget", "v", "--password-file", home.passwordFile)
      .expect(69, says: "no longer has a slot", "again")
    try keyring.startBus()
    try keyring.startUnlocked()
    try run("forget", "v").expect(0, prints: "it had no slot")
  }

  @Test(.enabled(if: Keyrings.isAvailable, sessions))
  func `a keyring that does not answer ends the command with an error`() throws {
    try remember()
    keyring.suspendKeyring()
    try run("get", "v", "name", "--keyring").expect(69, says: "25 seconds")
  }

  @Test(.enabled(if: Keyrings.isAvailable, sessions))
  func `a vault in the keyring and its key do not see each other`() throws {
    let file = home.folder.path("exported")
    try run("export", "v", file).expect(0)
    try run("import", file, store: "secret-service").expect(0)
    try remember(store: "secret-service")
    #expect(try run("list", store: "secret-service").text == "v\n")
    #expect(try run("get", "v", "name", "--keyring", store: "secret-service").text == "value")
    try run("get", "v", "name", "--keyring").expect(77, says: "has no key")
    try run("forget", "v", store: "secret-service").expect(0)
    #expect(try run("list", store: "secret-service").text == "v\n")
  }
}
