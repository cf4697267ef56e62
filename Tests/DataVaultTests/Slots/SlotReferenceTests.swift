import DataVault
import DataVaultTesting
import Foundation
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

@Suite(.enabled(if: JoseReader.isAvailable, JoseReader.skipReason)) struct SlotReferenceTests {
  let home = TemporaryHome()

  @Test func `the reference reader opens our vault with each slot`() async throws {
    let vault = try await Vault.create(
      .messaging, in: home.store, credentials: credentials("correct horse", salt: "sea"))
    try await vault.setText("value", for: "name")
    let code = try await vault.addRecoveryCode(named: "paper").text().array()
    let key = SecretBytes.random(byteCount: 32)
    try await vault.addKeyFile(named: "usb", key: key)
    let files = [
      "--password": try home.write("password", "correct horse".utf8),
      "--recovery-code": try home.write("code", code),
      "--key-file": try home.write("key", key.array()),
    ]
    let salt = try home.write("salt", "sea".utf8)
    func openByEach() throws {
      for (option, path) in files {
        var options = [option: path]
        if option == "--password" { options["--salt"] = salt }
        let seen = try JoseReader.open(home.file(), by: options)
        #expect(seen["items"] as? [String: [String: String]] == ["name": ["string": "value"]])
      }
    }
    try openByEach()
    var secrets = VaultSecrets()
    secrets.append(.password(credentials("correct horse", salt: "sea")))
    secrets.append(.recoveryCode(try RecoveryCode(parsing: SecretBytes(copying: code))))
    secrets.append(.keyFile(key.copy()))
    try await vault.rotate(keeping: secrets)
    try openByEach()
    let other = try home.write("other", [UInt8](repeating: 1, count: 32))
    #expect(throws: JoseReader.Failure.self) {
      try JoseReader.open(home.file(), by: ["--key-file": other])
    }
  }

  @Test(arguments: ["--password", "--recovery-code", "--key-file", "all"])
  func `a vault that the reference reader wrote opens with each slot`(option: String) async throws {
    try home.store.prepare()
    let all = [
      "--password": try home.write("password", "correct horse".utf8),
      // A missing file: the reference reader draws the code.
      "--recovery-code": home.path.appending("code"),
      "--key-file": try home.write("key", SlotSecrets.keyFile),
    ]
    let slots = all.filter { option == "all" || $0.key == option }
    try JoseReader.write(home.file(), slots: slots, items: #"{"a":{"string":"x"}}"#)
    for option in slots.keys {
      let vault = try await Vault.get(.messaging, in: home.store)
      switch option {
      case "--password": try await vault.unlock(with: credentials("correct horse"))
      case "--recovery-code":
        let text = try String(contentsOfFile: home.path.appending("code").string, encoding: .utf8)
        try await vault.unlock(
          with: .recoveryCode(SlotSecrets.code(text.trimmingCharacters(in: .newlines))))
      default: try await vault.unlock(with: SlotSecrets.key())
      }
      #expect(try await vault.text("a") == "x")
      try await vault.setText("more", for: option)
    }
    for (option, path) in slots {
      let seen = try JoseReader.open(home.file(), by: [option: path])
      #expect((seen["items"] as? [String: Any])?.count == slots.count + 1)
    }
  }
}
