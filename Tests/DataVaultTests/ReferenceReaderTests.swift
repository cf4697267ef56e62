import DataVault
import DataVaultTesting
import Foundation
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

@Suite(.enabled(if: JoseReader.isAvailable, JoseReader.skipReason)) struct ReferenceReaderTests {
  let home = TemporaryHome()

  @Test func `an independent JOSE library opens a vault without caller's salt`() async throws {
    let vault = try await Vault.create(
      .messaging, in: home.store, credentials: credentials("correct horse"))
    try await vault.setText("wörld \"\\\n\u{0}\u{7F}😀", for: "hellö\t\"")
    try await vault.set(SecretBytes(copying: [0, 255, 16]), kind: .binary, for: "bytes")
    let password = try home.write("pw", "correct horse".utf8)
    let seen = try JoseReader.open(home.file(), by: ["--password": password])
    let items = try #require(seen["items"] as? [String: [String: String]])
    #expect(
      items == ["hellö\t\"": ["string": "wörld \"\\\n\u{0}\u{7F}😀"], "bytes": ["binary": "AP8Q"]])
    #expect(seen["generation"] as? Int == 3)  // 1 at first, 1 more with each of two items
    #expect(throws: JoseReader.Failure.self) {
      try JoseReader.open(
        home.file(), by: ["--password": try home.write("no", "wrong horse".utf8)])
    }
  }

  @Test func `an independent JOSE library opens a vault with the caller's salt`() async throws {
    _ = try await Vault.create(
      .messaging, in: home.store, credentials: credentials("correct horse", salt: "sea"))
    let password = try home.write("pw", "correct horse".utf8)
    #expect(throws: JoseReader.Failure.self) {
      try JoseReader.open(home.file(), by: ["--password": password])
    }
    let salt = try home.write("salt", "sea".utf8)
    let seen = try JoseReader.open(home.file(), by: ["--password": password, "--salt": salt])
    #expect((seen["clear"] as? [String: Any])?["vault"] as? String == "messaging")
  }

  @Test(arguments: [nil, "sea"]) func `a vault that an independent JOSE library wrote opens`(
    salt: String?
  ) async throws {
    try home.store.prepare()
    var options = ["--password": try home.write("pw", "correct horse".utf8)]
    options["--salt"] = try salt.map { try home.write("salt", $0.utf8) }
    try JoseReader.write(
      home.file(), slots: options,
      items: #"{"z":{"string":"a\n\u00e4\ud83d\ude00"},"ä":{"binary":"AAEC"},"a":{"string":""}}"#)
    let vault = try await Vault.get(.messaging, in: home.store)
    try await vault.unlock(with: credentials("correct horse", salt: salt))
    #expect(try await vault.itemNames().map(\.name) == ["a", "z", "ä"])
    #expect(try await vault.text("z") == "a\nä😀")
    #expect(try await vault.item("ä").bytes.array() == [0, 1, 2])
    try await vault.setText("more", for: "b")
    let seen = try JoseReader.open(home.file(), by: options)
    #expect((seen["items"] as? [String: Any])?.count == 4)
  }
}
