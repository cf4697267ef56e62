import Foundation
import MessageCipher
import TestSupport
import Testing

/// The messages in `Fixtures/messages`.
@Suite struct FixtureTests {
  private static func names(_ folder: String) -> [String] {
    let path = Repository.path("Fixtures/messages/\(folder)")
    return ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }

  /// Decrypts a file with the keys of its README, as its name says: a file, a member, or a message.
  private func decrypt(_ path: String) throws -> MessageCipher.Decrypted {
    let cipher = try Samples.tolerantCipher(
      legacy: path.contains("legacy-static") ? .legacyStaticIV : .legacyRandomIV)
    let url = URL(fileURLWithPath: Repository.path("Fixtures/messages/\(path)"))
    let contents = try Data(contentsOf: url)
    if path.hasSuffix(".bin") { return try cipher.decrypt(bytes: contents, channel: "orders") }
    return path.contains("member") && !path.contains("of-a-member")
      ? try cipher.decrypt(member: "pn_other", of: contents, channel: "orders")
      : try cipher.decrypt(contents, channel: "orders")
  }

  @Test(arguments: names("positive"))
  func `a message of version 1 decrypts`(name: String) throws {
    let decrypted = try decrypt("positive/\(name)")
    let form: MessageCipher.Form =
      if name.hasPrefix("xaes") {
        .xaes256GCM
      } else if name.hasPrefix("aes-cbc") {
        .aesCBC
      } else {
        name.hasPrefix("legacy-static") ? .legacyStaticIV : .legacyRandomIV
      }
    #expect(decrypted.form == form)
    switch name {
    case "xaes-empty-file.bin": #expect(decrypted.bytes == [])
    case "xaes-file.bin": #expect(decrypted.bytes == (0...255).map { UInt8($0) })
    case let name where name.hasSuffix("file.bin"):
      #expect(decrypted.text == "abcdefghijklmnopqrstuvwxyz")
    case let name where name.hasSuffix("other-writing.json"):
      #expect(decrypted.text == #""zwei Bücher \ud83d\udcda, 📚 and\u0000\/""#)
    case let name where name.hasSuffix("member.json"):
      #expect(
        decrypted.text
          == "{\"pn_gcm\": {\"data\": 1},\n \"pn_other\" : \(Samples.json), \"z\":0}")
    default: #expect(decrypted.text == Samples.json)
    }
  }

  @Test(arguments: names("negative"))
  func `a message with one fault is refused with that fault's error`(name: String) throws {
    let expected: MessageCipherError.Code =
      switch name.prefix(while: { $0 != "." }) {
      case "newer-header-version", "unknown-identifier": .unknownCryptor
      case "key-id-flipped", "key-of-another-cipher": .unknownKey
      case "not-json", "member-twice": .notJSON
      case "member-missing": .memberMissing
      case "not-a-string", "not-base64", "base64url", "base64-without-padding",
        "base64-with-a-line-break", "base64-with-unused-bits":
        .notEncrypted
      default: .decryptionFailed
      }
    #expect(code { _ = try decrypt("negative/\(name)") } == expected)
  }

  @Test func `no fixture is missing`() {
    #expect(Self.names("positive").count == 19)
    #expect(Self.names("negative").count == 34)
  }
}
