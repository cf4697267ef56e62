import MessageCipher
import TestSupport
import Testing
import VaultCrypto

/// Forms and keys that a reader was not given.
@Suite struct RefusalTests {
  @Test(arguments: Samples.pubNubForms)
  func `a reader of the authenticated form refuses every other form`(
    form: MessageCipher.Form
  ) throws {
    let reader = try MessageCipher(key: SecretBytes(copying: (0..<32).map { $0 }))
    let other = try Samples.cipher(form)
    let message = try other.encrypt(Samples.json.utf8, channel: "c")
    #expect(code { _ = try reader.decrypt(message, channel: "c") } == .formRefused)
    let object = try other.encrypt(member: "a", of: #"{"a":1}"#.utf8, channel: "c")
    #expect(code { _ = try reader.decrypt(member: "a", of: object, channel: "c") } == .formRefused)
    let file = try other.encrypt(bytes: [1], channel: "c")
    #expect(code { _ = try reader.decrypt(bytes: file, channel: "c") } == .formRefused)
  }

  @Test(arguments: Samples.forms, Samples.forms)
  func `a cipher reads the form that it writes, and the forms of its other keys`(
    written: MessageCipher.Form, added: MessageCipher.Form
  ) throws {
    let message = try Samples.cipher(added).encrypt(Samples.json.utf8, channel: "c")
    let isSameFamily = [written, added].allSatisfy { "\($0)".hasPrefix("legacy") }
    if written != added, !isSameFamily {
      let strict = try Samples.cipher(written)
      #expect(code { _ = try strict.decrypt(message, channel: "c") } == .formRefused)
      let tolerant = try MessageCipher(
        writing: Samples.key(written), alsoReading: [Samples.key(added)])
      #expect(try tolerant.decrypt(message, channel: "c").form == added)
      let own = try tolerant.encrypt(Samples.json.utf8, channel: "c")
      #expect(try strict.decrypt(own, channel: "c").form == written)
    }
  }

  @Test(arguments: Samples.pubNubForms, Samples.pubNubForms)
  func `keys whose messages cannot be told apart are refused`(
    first: MessageCipher.Form, second: MessageCipher.Form
  ) throws {
    let isSameFamily = (first == .aesCBC) == (second == .aesCBC)
    let outcome = code {
      _ = try MessageCipher(
        writing: Samples.key(), alsoReading: [Samples.key(first), Samples.key(second)])
    }
    #expect(outcome == (isSameFamily ? .invalidArgument : nil))
  }

  @Test func `messages under older keys are read, and those under unknown keys named`() throws {
    let keys = try [0, 0x20, 0x40].map { try Samples.key(from: $0) }
    let reader = try MessageCipher(writing: keys[0], alsoReading: [keys[1]])
    for key in keys[..<2] {
      let message = try MessageCipher(writing: key).encrypt("1".utf8, channel: "c")
      #expect(try reader.decrypt(message, channel: "c").text == "1")
    }
    let foreign = try MessageCipher(writing: keys[2]).encrypt("1".utf8, channel: "c")
    let error = try #require(failure { _ = try reader.decrypt(foreign, channel: "c") })
    #expect(error.code == .unknownKey)
    #expect(error.message.contains(try #require(keys[2].id)))
    #expect(Set(keys.map(\.id)).count == 3)
  }

  @Test func `a key's id is the one in the format's page, and PubNub's keys have none`() throws {
    let id = try #require(try Samples.key().id)
    #expect(try Repository.text("docs/reference/encrypted-message-format.md").contains("`\(id)`"))
    for form in Samples.pubNubForms { #expect(try Samples.key(form).id == nil) }
  }

  @Test(arguments: [0, 1, 16, 31, 33, 64])
  func `a key of the authenticated form has 32 bytes`(byteCount: Int) {
    let failure = failure { _ = try MessageCipher(key: SecretBytes.random(byteCount: byteCount)) }
    #expect(failure?.code == .invalidArgument)
  }

  @Test(arguments: Samples.pubNubForms)
  func `a cipher key has 1 byte to 64 KiB`(form: MessageCipher.Form) {
    for (byteCount, isAllowed) in [(0, false), (1, true), (65536, true), (65537, false)] {
      let key = SecretBytes.random(byteCount: byteCount)
      #expect(
        code { _ = try MessageCipher.Key(form, key) } == (isAllowed ? nil : .invalidArgument))
    }
  }

  @Test func `a text that is not encrypted is told from one that cannot be decrypted`() throws {
    let cipher = try Samples.tolerantCipher()
    let texts = [
      #"{"text":"two books"}"#, #""two books""#, "1", "null", "[]", #""""#, #""c2hvcnQ=""#,
      #""\ud800""#,
    ]
    for text in texts {
      #expect(code { _ = try cipher.decrypt(text.utf8, channel: "c") } == .notEncrypted)
    }
    let object = #"{"a":"two books","b":1}"#
    for member in ["a", "b"] {
      #expect(
        code { _ = try cipher.decrypt(member: member, of: object.utf8, channel: "c") }
          == .notEncrypted)
    }
  }

  @Test func `an unknown identifier is named, and never printed raw`() throws {
    let cipher = try Samples.tolerantCipher()
    func description(_ sealed: [UInt8]) -> String? {
      failure { _ = try cipher.decrypt(bytes: sealed, channel: "c") }?.message
    }
    let start = Array("PNED".utf8)
    #expect(
      description(start + [1] + Array("ABCD".utf8) + [0])
        == "unknown cryptor: the message on channel 'c' has cryptor 'ABCD'")
    #expect(
      description(start + [1, 0x1B, 0x5B, 0x32, 0x4A, 0])
        == "unknown cryptor: the message on channel 'c' has cryptor 1b5b324a")
    #expect(
      description(start + [2] + Array("ACRH".utf8))
        == "unknown cryptor: the message on channel 'c' has header version 2")
  }
}
