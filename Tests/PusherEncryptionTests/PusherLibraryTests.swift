import PusherEncryption
import TestSupport
import Testing
import VaultCrypto

/// Pusher's own server library reads what we write, and we read what it writes.
@Suite struct PusherLibraryTests {
  private static let python = Program.python(
    with: "pusher, nacl", variable: "DATAVAULT_PUSHER_PYTHON", environment: "pusher")

  @Test(
    .enabled(if: python != nil, "Pusher's library is missing: scripts/install-dependencies --tests")
  )
  func `Pusher's library and ours read each other's events`() throws {
    let channel = "private-encrypted-cache-z;1"
    let masterKey = SecretBytes.random(byteCount: 32)
    let key = try PusherEncryption.key(of: channel, masterKey: masterKey)
    let encryption = PusherEncryption()
    let ours = try encryption.seal(Array(#"{"ours":"ü"}"#.utf8), key: key)
    let program = try Program.run(
      #require(Self.python),
      [
        "-W", "ignore", Repository.path("Tests/ReferenceReaders/pusher_encryption.py"), channel,
        PusherEncryption.sharedSecret(of: masterKey).text(), #"{"theirs":"ü"}"#,
        String(decoding: ours, as: UTF8.self),
      ], environment: ["PYTHONUTF8": "1"])
    let lines = program.text.split(separator: "\n").map(String.init)
    guard program.status == 0, lines.count == 3 else {
      Issue.record("\(program.errors)")
      return
    }
    let theirKey = try encryption.key(sharedSecret: secret(lines[0]))
    let isSameKey = SecretBytes.isEqual(theirKey, key)
    #expect(isSameKey)
    let theirs = try encryption.open(Array(lines[1].utf8), key: theirKey)
    #expect(theirs == Array(#"{"theirs":"ü"}"#.utf8))
    #expect(lines[2] == #"{"ours":"ü"}"#)
  }
}
