import Foundation
import MessageCipher
import TestSupport
import Testing
import VaultCrypto

/// Messages between `MessageCipher` and PubNub's own SDK for Python, unchanged.
@Suite(.enabled(if: PythonProgram.pubNub.isAvailable, PythonProgram.pubNub.skipReason))
struct PubNubTests {
  private static let cipherKeys = ["enigma", "zwölf Bücher 📚", String(repeating: "k", count: 200)]

  /// JSON values: plaintexts of 15, 16 and 17 bytes among them.
  private static var values: [Any] {
    [
      "", "a", String(repeating: "b", count: 13), String(repeating: "c", count: 14),
      String(repeating: "d", count: 15), "zwei Bücher", "漢字 📚👩‍👩‍👧 \u{0}\u{1F}\"\\/", 0, -1.5, true,
      [Any](),
      [String: Any](), ["text": "two books", "n": [1, 2, ["x": NSNull()]]] as [String: Any],
      String(repeating: "große Nachricht ", count: 4_000),
    ]
  }

  private static func line(_ key: String, _ action: String, _ value: Any, plain: Bool) -> [String:
    Any]
  {
    ["cipherKey": key, action: value].merging(plain ? ["plain": true] : [:]) { $1 }
  }

  private static func cipher(_ form: MessageCipher.Form, _ key: String) throws -> MessageCipher {
    try MessageCipher(writing: MessageCipher.Key(form, secret(key)))
  }

  private static func result(_ answer: Any) throws -> Any {
    let answer = try #require(answer as? [String: Any])
    return try #require(answer["result"], "\(answer)")
  }

  private static func json(_ value: Any) throws -> [UInt8] {
    [UInt8](
      try JSONSerialization.data(
        withJSONObject: value, options: [.fragmentsAllowed, .sortedKeys, .withoutEscapingSlashes]))
  }

  private static func value(_ json: [UInt8]) throws -> NSObject {
    try #require(
      try JSONSerialization.jsonObject(with: Data(json), options: .fragmentsAllowed) as? NSObject)
  }

  @Test(arguments: Samples.pubNubForms, [false, true])
  func `what the SDK publishes decrypts here`(form: MessageCipher.Form, plain: Bool) throws {
    if plain, form == .aesCBC { return }  // the SDK without a module knows the legacy forms alone
    let cases = Self.cipherKeys.flatMap { key in Self.values.map { (key, $0) } }
    let answers = try PythonProgram.pubNub.run(
      cases.map { Self.line($0, "publish", $1, plain: plain) }, form.description)
    for ((key, value), answer) in zip(cases, answers) {
      let wire = try #require(try Self.result(answer) as? String)
      let opened = try Self.cipher(form, key).decrypt(wire.utf8, channel: "c")
      #expect(opened.form == form)
      #expect(try Self.value(opened.bytes).isEqual(value))
    }
  }

  @Test(arguments: Samples.pubNubForms, ["receive", "history"])
  func `what is encrypted here reaches the SDK's listener and its history`(
    form: MessageCipher.Form, action: String
  ) throws {
    if action == "history", form == .aesCBC { return }  // version 2 of the history in the SDK
    let cases = Self.cipherKeys.flatMap { key in Self.values.map { (key, $0) } }
    let lines = try cases.map { key, value in
      let message = try Self.cipher(form, key).encrypt(Self.json(value), channel: "c")
      return Self.line(key, action, try Self.value(message), plain: action == "history")
    }
    let answers = try PythonProgram.pubNub.run(lines, form.description)
    for ((_, value), answer) in zip(cases, answers) {
      let received = try Self.result(answer) as? NSObject
      #expect(received?.isEqual(value) == true)
    }
  }

  @Test(arguments: Samples.pubNubForms)
  func `files are exchanged with the SDK`(form: MessageCipher.Form) throws {
    let cipher = try Self.cipher(form, "enigma")
    let files = [1, 15, 16, 17, 1000, 300_000].map { byteCount in
      (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 13 &+ 5) }
    }
    let lines = try files.map { file in
      let sealed = try cipher.encrypt(bytes: file, channel: "c")
      return Self.line("enigma", "receiveFile", Base64.text(sealed), plain: false)
    }
    let requests = files.map { Self.line("enigma", "sendFile", Base64.text($0), plain: false) }
    let answers = try PythonProgram.pubNub.run(lines + requests, form.description)
    for (file, answer) in zip(files, answers) {
      #expect(try Self.result(answer) as? String == Base64.text(file))
    }
    for (file, answer) in zip(files, answers.dropFirst(files.count)) {
      let text = try #require(try Self.result(answer) as? String)
      let sealed = try #require(Base64.bytes(text))
      #expect(try cipher.decrypt(bytes: sealed, channel: "c").bytes == file)
    }
  }

  @Test func `a static initialization vector gives the SDK's own bytes`() throws {
    let cipher = try Self.cipher(.legacyStaticIV, "enigma")
    let values = Self.values.compactMap { $0 as? String }.filter {
      $0.utf8.allSatisfy { $0 < 0x80 }
    }
    let answers = try PythonProgram.pubNub.run(
      values.map { Self.line("enigma", "publish", $0, plain: false) }, "legacyStaticIV")
    for (value, answer) in zip(values, answers) {
      let ours = try cipher.encrypt("\"\(value)\"".utf8, channel: "c")
      #expect(try Self.result(answer) as? String == String(decoding: ours, as: UTF8.self))
    }
  }

  /// The SDK's default module writes the legacy form and reads the crypto module's too.
  @Test func `a cipher for the SDK's default configuration reads both of its forms`() throws {
    let reader = try MessageCipher(
      writing: MessageCipher.Key(.legacyRandomIV, secret("enigma")),
      alsoReading: [MessageCipher.Key(.aesCBC, secret("enigma"))])
    for form in ["legacyRandomIV", "aesCBC"] {
      let answer = try PythonProgram.pubNub.run(
        [Self.line("enigma", "publish", "hello", plain: false)], form)[0]
      let wire = try #require(try Self.result(answer) as? String)
      #expect(try reader.decrypt(wire.utf8, channel: "c").form.description == form)
    }
  }

  @Test func `the SDK reports an unknown cryptor for DataVault's form`() throws {
    let message = try Samples.cipher().encrypt(Samples.json.utf8, channel: "c")
    let answer = try PythonProgram.pubNub.run(
      [Self.line("enigma", "receive", try Self.value(message), plain: false)], "aesCBC")[0]
    let error = (answer as? [String: String])?["error"]
    #expect(error?.contains("unknown cryptor error") == true)
  }
}
