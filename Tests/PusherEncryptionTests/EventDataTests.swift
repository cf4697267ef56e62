@testable import PusherEncryption
import MessagingClient
import TestSupport
import Testing
import VaultCrypto

/// The text of an event's data, and the texts of keys.
@Suite struct EventDataTests {
  private static let nonce = "bm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5u"
  private static let ciphertext = "wpzI06ZLcdFxL96r+l8b8y6m3kO1OdQ="

  private func open(_ text: String) throws -> [UInt8] {
    try PusherEncryption().open(Array(text.utf8), key: SecretboxTests.channelKey())
  }

  @Test(arguments: [
    #"{"ciphertext":"\#(ciphertext)","nonce":"\#(nonce)"}"#,
    #" { "nonce" : "\#(nonce)" , "ciphertext" : "\#(ciphertext)" } "#,
    #"{"nonce":"\#(nonce)","ciphertext":"\#(ciphertext)","more":{"a":[1]}}"#,
    #"{"n\u006fnce":"\u0062m5ubm5ubm5ubm5ubm5ubm5ubm5ubm5u","ciphertext":"\#(ciphertext)"}"#,
  ])
  func `the same members in another form are read`(text: String) throws {
    #expect(try open(text) == Array(#"{"x":1}"#.utf8))
  }

  @Test(arguments: [
    "", "{}", "null", "[]", #""text""#, "{", "\u{FEFF}{}",
    #"{"nonce":"\#(nonce)"}"#, #"{"ciphertext":"\#(ciphertext)"}"#,
    #"{"nonce":1,"ciphertext":"\#(ciphertext)"}"#, #"{"nonce":"\#(nonce)","ciphertext":null}"#,
    #"{"nonce":"\#(nonce)","ciphertext":"\#(ciphertext)"}x"#,
    #"{"nonce":"\#(nonce)","nonce":"\#(nonce)","ciphertext":"\#(ciphertext)"}"#,
    #"{"nonce":"\#(nonce)","ciphertext":"\#(ciphertext)","ciphertext":"\#(ciphertext)"}"#,
    #"{"Nonce":"\#(nonce)","ciphertext":"\#(ciphertext)"}"#,
    // Base64: another length, no padding, too much of it, other characters, bits that padding leaves.
    #"{"nonce":"bm5u","ciphertext":"\#(ciphertext)"}"#,
    #"{"nonce":"\#(nonce)bm5u","ciphertext":"\#(ciphertext)"}"#,
    #"{"nonce":"\#(nonce)","ciphertext":"wpzI06ZLcdFxL96r+l8b8y6m3kO1OdQ"}"#,
    #"{"nonce":"\#(nonce)","ciphertext":"wpzI06ZLcdFxL96r+l8b8y6m3kO1OdQ=="}"#,
    #"{"nonce":"\#(nonce)","ciphertext":"wpzI06ZLcdFxL96r-l8b8y6m3kO1OdQ="}"#,
    #"{"nonce":"\#(nonce)","ciphertext":"wpzI06ZLcdFxL96r+l8b8y6m3kO1OdR="}"#,
    #"{"nonce":"\#(nonce)","ciphertext":"wpzI06ZLcdFxL96r +l8b8y6m3kO1OdQ="}"#,
    #"{"nonce":"\#(nonce)","ciphertext":"wpzI06ZLcdFxL96r\n+l8b8y6m3kO1OdQ="}"#,
    #"{"nonce":"\#(nonce)","ciphertext":"wpzI06ZL\u0000dFxL96r+l8b8y6m3kO1OdQ="}"#,
    #"{"nonce":"\#(nonce)","ciphertext":"\ud800"}"#,
    // Shorter than a tag.
    #"{"nonce":"\#(nonce)","ciphertext":""}"#, #"{"nonce":"\#(nonce)","ciphertext":"AAAA"}"#,
    #"{"nonce":"\#(nonce)","ciphertext":"\#(ciphertext)","more":[[[[[[[[[[1]]]]]]]]]]}"#,
  ])
  func `what is not an encrypted event is malformed, and not shown`(text: String) {
    let error = #expect(throws: ChannelDecryptionError.self) { try open(text) }
    #expect(error?.code == .malformed)
    #expect(error.map { !"\($0)".contains("wpzI") && !"\($0)".contains("bm5u") } == true)
  }

  @Test func `what is not UTF-8 is malformed`() throws {
    let key = try SecretboxTests.channelKey()
    let error = #expect(throws: ChannelDecryptionError.self) {
      try PusherEncryption().open([0x22, 0xFF, 0x22], key: key)
    }
    #expect(error?.code == .malformed)
  }

  @Test func `sizes over the limits are refused`() throws {
    let key = try SecretboxTests.channelKey()
    let data = [UInt8](repeating: 0x20, count: PusherEncryption.maximumDataByteCount + 1)
    let opening = #expect(throws: ChannelDecryptionError.self) {
      try PusherEncryption().open(data, key: key)
    }
    #expect(opening?.code == .tooLarge)
    let plaintext = [UInt8](repeating: 0, count: PusherEncryption.maximumPlaintextByteCount + 1)
    let sealing = #expect(throws: ChannelDecryptionError.self) {
      try PusherEncryption().seal(plaintext, key: key)
    }
    #expect(sealing?.code == .tooLarge)
  }

  // MARK: Keys

  enum Operation: CaseIterable {
    case seal, open, derive, text

    func run(_ key: borrowing SecretBytes) throws(ChannelDecryptionError) {
      switch self {
      case .seal: _ = try PusherEncryption().seal([1], key: key)
      case .open: _ = try PusherEncryption().open(Array(SecretboxTests.data.utf8), key: key)
      case .derive: _ = try PusherEncryption.key(of: SecretboxTests.channel, masterKey: key)
      case .text: _ = try PusherEncryption.sharedSecret(of: key)
      }
    }
  }

  @Test(arguments: Operation.allCases, [0, 31, 33, 64])
  func `a key of another length is refused`(operation: Operation, byteCount: Int) {
    do throws(ChannelDecryptionError) {
      try operation.run(SecretBytes(copying: [UInt8](repeating: 1, count: byteCount)))
      Issue.record("no error")
    } catch {
      #expect(error.code == .invalidKey)
    }
  }

  @Test(arguments: [
    "", "vI4VogqLwltIM28yEkwbWBvURP6YI4Wbcu8Iv9mdeYA",
    "vI4VogqLwltIM28yEkwbWBvURP6YI4Wbcu8Iv9mdeYB=",
    "vI4VogqLwltIM28yEkwbWBvURP6YI4Wbcu8Iv9mdeYA=\n",
    "vI4VogqLwltIM28yEkwbWBvURP6YI4Wbcu8Iv9mdeYAA",
    "vI4VogqLwltIM28yEkwbWBvURP6YI4Wbcu8Iv9md", "vI4VogqLwltIM28yEkwbWBvURP6YI4Wbcu8Iv9mde_A=",
    "\u{0}I4VogqLwltIM28yEkwbWBvURP6YI4Wbcu8Iv9mdeYA=",
  ])
  func `the text of a key is base64 with padding of 32 bytes`(text: String) {
    do throws(ChannelDecryptionError) {
      _ = try PusherEncryption().key(sharedSecret: secret(text))
      Issue.record("no error")
    } catch {
      #expect(error.code == .invalidKey)
      #expect(text.isEmpty || !"\(error)".contains(text))
    }
  }

  @Test(arguments: ["", "z", "private-z", "private-encrypted", "Private-encrypted-z"])
  func `only an encrypted channel has a key`(channel: String) {
    do throws(ChannelDecryptionError) {
      _ = try PusherEncryption.key(
        of: channel, masterKey: SecretBytes(copying: SecretboxTests.masterKey))
      Issue.record("no error")
    } catch {
      #expect(error.code == .invalidChannel)
    }
  }

  @Test func `a channel's name has at most 164 bytes`() throws {
    let name = "private-encrypted-" + String(repeating: "a", count: 146)
    let masterKey = SecretBytes(copying: SecretboxTests.masterKey)
    _ = try PusherEncryption.key(of: name, masterKey: masterKey)
    #expect(throws: ChannelDecryptionError.self) {
      _ = try PusherEncryption.key(of: name + "a", masterKey: masterKey)
    }
  }
}
