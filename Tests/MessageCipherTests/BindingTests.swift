import MessageCipher
import TestSupport
import Testing

/// What a message is bound to.
@Suite struct BindingTests {
  private static let object = #"{"a":1,"b":2}"#

  @Test(arguments: ["order", "orders ", "Orders", "orders\0", "ordersm"])
  func `an authenticated message opens in its own channel alone`(other: String) throws {
    let cipher = try Samples.cipher()
    let message = try cipher.encrypt(Samples.json.utf8, channel: "orders")
    #expect(try cipher.decrypt(message, channel: "orders").text == Samples.json)
    #expect(code { _ = try cipher.decrypt(message, channel: other) } == .decryptionFailed)
  }

  @Test func `channels that look the same and have other bytes are different channels`() throws {
    let cipher = try Samples.cipher()
    let message = try cipher.encrypt(Samples.json.utf8, channel: "caf\u{E9}")
    #expect("caf\u{E9}" == "cafe\u{301}")
    #expect(code { _ = try cipher.decrypt(message, channel: "cafe\u{301}") } == .decryptionFailed)
  }

  @Test func `an authenticated value cannot be moved to another member`() throws {
    let cipher = try Samples.cipher()
    let object = try cipher.encrypt(member: "a", of: Self.object.utf8, channel: "c")
    let moved = String(decoding: object, as: UTF8.self)
      .replacing("\"b\"", with: "\"x\"").replacing("\"a\"", with: "\"b\"")
    #expect(
      code { _ = try cipher.decrypt(member: "b", of: moved.utf8, channel: "c") }
        == .decryptionFailed)
  }

  @Test func `an authenticated message, a member and bytes do not stand for one another`() throws {
    let cipher = try Samples.cipher()
    let whole = try cipher.encrypt("1".utf8, channel: "c")
    let object = try cipher.encrypt(member: "a", of: #"{"a":1}"#.utf8, channel: "c")
    let bytes = try cipher.encrypt(bytes: "1".utf8, channel: "c")
    let value = Array(object.dropFirst(5).dropLast())
    let texts = ["message": whole, "member": value, "bytes": message(bytes)]
    for (kind, text) in texts {
      let inObject = Array(#"{"a":"#.utf8) + text + Array("}".utf8)
      #expect(
        code { _ = try cipher.decrypt(text, channel: "c") }
          == (kind == "message" ? nil : .decryptionFailed))
      #expect(
        code { _ = try cipher.decrypt(member: "a", of: inObject, channel: "c") }
          == (kind == "member" ? nil : .decryptionFailed))
      #expect(
        code { _ = try cipher.decrypt(bytes: sealedBytes(text), channel: "c") }
          == (kind == "bytes" ? nil : .decryptionFailed))
    }
  }

  /// The byte 02 begins a member in the associated data.
  @Test func `the end of a channel is not taken for the beginning of a member`() throws {
    let cipher = try Samples.cipher()
    let object = try cipher.encrypt(member: "b\u{2}c", of: #"{"b\u0002c":1}"#.utf8, channel: "a")
    let other = String(decoding: object, as: UTF8.self).replacing(#""b\u0002c""#, with: #""c""#)
    #expect(
      code { _ = try cipher.decrypt(member: "c", of: other.utf8, channel: "a\u{2}b") }
        == .decryptionFailed)
  }

  /// The documented weakness of PubNub's forms.
  @Test(arguments: Samples.pubNubForms)
  func `a message of PubNub's forms opens in every channel and place`(
    form: MessageCipher.Form
  ) throws {
    let cipher = try Samples.cipher(form)
    let whole = try cipher.encrypt("1".utf8, channel: "here")
    #expect(try cipher.decrypt(whole, channel: "there").text == "1")
    let object = Array(#"{"a":"#.utf8) + whole + Array("}".utf8)
    #expect(try cipher.decrypt(member: "a", of: object, channel: "c").text == #"{"a":1}"#)
  }

  @Test func `names that are empty or too long are refused`() throws {
    let cipher = try Samples.cipher()
    let long = String(repeating: "ü", count: 512)
    for channel in ["", long + "c"] {
      #expect(code { _ = try cipher.encrypt("1".utf8, channel: channel) } == .invalidArgument)
      #expect(code { _ = try cipher.decrypt("1".utf8, channel: channel) } == .invalidArgument)
      #expect(code { _ = try cipher.encrypt(bytes: [], channel: channel) } == .invalidArgument)
    }
    let object = "{\"\(long)\":1,\"\":2}"
    for member in ["", long] {
      let sealed = try cipher.encrypt(member: member, of: object.utf8, channel: long)
      #expect(try cipher.decrypt(member: member, of: sealed, channel: long).text == object)
    }
    #expect(
      code { _ = try cipher.encrypt(member: long + "c", of: object.utf8, channel: "c") }
        == .invalidArgument)
  }
}
