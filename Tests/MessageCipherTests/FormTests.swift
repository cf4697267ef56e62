import TestSupport
import Testing
import VaultCrypto

@testable import MessageCipher

@Suite struct FormTests {
  /// Empty, around the lengths of blocks, and large.
  private static let lengths = [0, 1, 15, 16, 17, 31, 32, 33, 4096, 1 << 20]

  @Test(arguments: Samples.forms, lengths)
  func `bytes of any length come back`(form: MessageCipher.Form, byteCount: Int) throws {
    let bytes = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    let cipher = try Samples.cipher(form)
    let sealed = try cipher.encrypt(bytes: bytes, channel: "files")
    let opened = try cipher.decrypt(bytes: sealed, channel: "files")
    #expect(opened.bytes == bytes)
    #expect(opened.form == form)
    let padded = byteCount / 16 * 16 + 16
    let expected: [MessageCipher.Form: Int] = [
      .xaes256GCM: 42 + byteCount + 16, .aesCBC: 26 + padded, .legacyRandomIV: 16 + padded,
      .legacyStaticIV: padded,
    ]
    #expect(sealed.count == expected[form])
  }

  @Test(
    arguments: Samples.forms,
    [
      #""""#, "null", "0", #""zwei Bücher \ud83d\udcda 📚""#, #" {"a" : [1.50e+2, "\/"]} "#,
      #""fifteen bytes""#, #""sixteen bytes.""#,
    ])
  func `a message comes back byte for byte`(form: MessageCipher.Form, json: String) throws {
    let cipher = try Samples.cipher(form)
    let encrypted = try cipher.encrypt(json.utf8, channel: "c")
    #expect(encrypted.first == UInt8(ascii: "\"") && encrypted.last == UInt8(ascii: "\""))
    #expect(try cipher.decrypt(encrypted, channel: "c").text == json)
  }

  @Test(arguments: Samples.forms)
  func `equal messages differ unless the initialization vector is static`(
    form: MessageCipher.Form
  ) throws {
    let cipher = try Samples.cipher(form)
    let messages = try (0..<2).map { _ in try cipher.encrypt(Samples.json.utf8, channel: "c") }
    #expect((messages[0] == messages[1]) == (form == .legacyStaticIV))
  }

  @Test func `a message with known nonce matches the example in the format's page`() throws {
    let nonces = unsafe RandomSource { target in
      for index in target.indices { target[index] = 0xA0 + UInt8(index) }
    }
    let cipher = try MessageCipher(writing: Samples.key(random: nonces))
    let message = try cipher.encrypt(Samples.json.utf8, channel: "orders")
    let page = try Repository.text("docs/reference/encrypted-message-format.md")
    #expect(page.contains(String(decoding: message, as: UTF8.self)))
    #expect(
      try Repository.text("Fixtures/messages/positive/xaes-message.json")
        == String(decoding: message, as: UTF8.self))
  }

  @Test func `tasks share a cipher`() async throws {
    for form in Samples.forms {
      let cipher = try Samples.cipher(form)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<64 {
          group.addTask {
            let json = String(repeating: "\(number % 10)", count: 1 + number)
            let message = try cipher.encrypt("1\(json)".utf8, channel: "c")
            #expect(try cipher.decrypt(message, channel: "c").text == "1\(json)")
          }
        }
        try await group.waitForAll()
      }
    }
  }

  @Test func `sizes beyond the limits are refused in both directions`() throws {
    let cipher = try Samples.cipher()
    let limit = MessageCipher.maximumPlaintextByteCount
    let zeros = [UInt8](repeating: 0, count: limit)
    let sealed = try cipher.encrypt(bytes: zeros, channel: "c")
    #expect(try cipher.decrypt(bytes: sealed, channel: "c").bytes.count == limit)
    #expect(code { _ = try cipher.encrypt(bytes: zeros + [0], channel: "c") } == .tooLarge)
    #expect(code { _ = try cipher.decrypt(bytes: sealed + [0], channel: "c") } == .tooLarge)
    let text = [UInt8](repeating: 0x20, count: MessageCipher.maximumTextByteCount + 1)
    #expect(code { _ = try cipher.encrypt(text, channel: "c") } == .tooLarge)
    #expect(code { _ = try cipher.decrypt(text, channel: "c") } == .tooLarge)
    #expect(code { _ = try cipher.encrypt(member: "m", of: text, channel: "c") } == .tooLarge)
    #expect(code { _ = try cipher.decrypt(member: "m", of: text, channel: "c") } == .tooLarge)
  }

  @Test func `a result that no reader would take is refused`() throws {
    let half = String(repeating: "1", count: 12 << 20)
    let object = "{\"rest\":\(half)\(half),\"m\":\(half.prefix(7 << 20))}"
    let cipher = try Samples.cipher()
    #expect(
      code { _ = try cipher.encrypt(member: "m", of: object.utf8, channel: "c") } == .tooLarge)
  }
}
