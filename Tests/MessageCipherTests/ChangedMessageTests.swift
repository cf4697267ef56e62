import TestSupport
import Testing
import VaultCrypto

@testable import MessageCipher

/// Messages that were changed on their way.
@Suite struct ChangedMessageTests {
  @Test func `a change of any bit of an authenticated message is refused`() throws {
    let cipher = try Samples.tolerantCipher()
    let sealed = try sealedBytes(cipher.encrypt(Samples.json.utf8, channel: "c"))
    for bit in 0..<8 * sealed.count {
      var changed = sealed
      changed[bit / 8] ^= 1 << (bit % 8)
      let found = code { _ = try cipher.decrypt(message(changed), channel: "c") }
      let expected: MessageCipherError.Code =
        switch bit / 8 {
        case 0..<4: .notEncrypted
        case 4..<9: .unknownCryptor
        case 10..<18: .unknownKey
        default: .decryptionFailed
        }
      #expect(found == expected, "bit \(bit)")
    }
  }

  @Test(arguments: [MessageCipher.Form.xaes256GCM, .aesCBC])
  func `a message that is cut anywhere is refused`(form: MessageCipher.Form) throws {
    let cipher = try Samples.cipher(form)
    let sealed = try sealedBytes(cipher.encrypt(Samples.json.utf8, channel: "c"))
    for count in 0..<sealed.count {
      let found = code { _ = try cipher.decrypt(message(Array(sealed[..<count])), channel: "c") }
      #expect(found == (count < 4 ? .notEncrypted : .decryptionFailed), "\(count) bytes")
    }
  }

  @Test func `a message with bytes behind its end is refused`() throws {
    let cipher = try Samples.cipher()
    let sealed = try sealedBytes(cipher.encrypt(Samples.json.utf8, channel: "c"))
    for count in [1, 16, 1000] {
      let longer = sealed + [UInt8](repeating: 0, count: count)
      #expect(code { _ = try cipher.decrypt(message(longer), channel: "c") } == .decryptionFailed)
    }
  }

  /// The error must not tell a wrong tag, key, channel, length, padding and plaintext apart.
  @Test func `every failure of decryption has the same error`() throws {
    var errors: [MessageCipherError] = []
    for form in Samples.forms {
      let cipher = try Samples.cipher(form)
      let sealed = try sealedBytes(cipher.encrypt(Samples.json.utf8, channel: "c"))
      for change in 0..<256 {
        var changed = sealed
        changed[changed.count - 17] ^= UInt8(change)
        changed[changed.count - 1] ^= UInt8(change >> 4)
        if let error = failure({ _ = try cipher.decrypt(message(changed), channel: "c") }) {
          errors.append(error)
        }
      }
      let text = try sealedBytes(message(cipher.encrypt(bytes: "no JSON".utf8, channel: "c")))
      errors.append(
        try #require(failure { _ = try cipher.decrypt(message(text), channel: "c") }))
      let stranger =
        form == .xaes256GCM
        ? cipher : try MessageCipher(writing: MessageCipher.Key(form, secret("wrong")))
      errors.append(
        try #require(
          failure {
            _ = try stranger.decrypt(message(sealed), channel: "c")
            _ = try stranger.decrypt(bytes: sealed, channel: "d")
          }))
    }
    #expect(errors.count > 900)
    let expected = "the message on channel 'c' cannot be decrypted"
    #expect(
      errors.allSatisfy {
        $0.code == .decryptionFailed && $0.underlying == nil && $0.hint == errors[0].hint
          && $0.message.replacing("'d'", with: "'c'") == expected
      })
  }

  @Test func `padding is right in exactly the 16 ways that the standard has`() {
    for length in 1...16 {
      let good =
        [UInt8](repeating: 0xEE, count: 32 - length)
        + [UInt8](repeating: UInt8(length), count: length)
      #expect(BlockPadding.byteCount(endOf: good) == length)
      for position in 32 - length..<31 {
        var bad = good
        bad[position] ^= 1
        #expect(BlockPadding.byteCount(endOf: bad) == nil)
      }
    }
    for last in [0] + Array(17...255) {
      let block = [UInt8](repeating: UInt8(last), count: 32)
      #expect(BlockPadding.byteCount(endOf: block) == nil)
    }
    #expect(BlockPadding.byteCount(endOf: []) == nil)
    #expect((0..<16).map { BlockPadding.bytes(for: $0).count } == Array((1...16).reversed()))
  }

  /// The documented weakness: nothing authenticates AES-CBC.
  @Test func `a flipped bit of the initialization vector changes the message unnoticed`() throws {
    let cipher = try Samples.cipher(.aesCBC)
    var sealed = try sealedBytes(cipher.encrypt(#"{"price":100}"#.utf8, channel: "c"))
    sealed[10 + 9] ^= UInt8(ascii: "1") ^ UInt8(ascii: "9")
    let changed = try cipher.decrypt(message(sealed), channel: "c")
    #expect(changed.text == #"{"price":900}"#)
    #expect(!changed.form.isAuthenticated)
  }

  @Test func `errors and descriptions contain neither key nor plaintext`() throws {
    let key = try MessageCipher.Key(.aesCBC, secret("hunter2-hunter2"))
    let cipher = try MessageCipher(writing: key)
    var texts = ["\(key)", "\(cipher)", String(reflecting: cipher), String(reflecting: key)]
    dump(cipher, to: &texts[0])
    let error = failure { _ = try cipher.encrypt("hunter2 is no JSON".utf8, channel: "c") }
    texts.append("\(try #require(error))")
    #expect(error?.code == .notJSON)
    let sealed = try cipher.encrypt(bytes: "hunter2".utf8, channel: "c")
    let failed = failure { _ = try cipher.decrypt(message(sealed), channel: "c") }
    texts.append("\(try #require(failed))")
    #expect(texts.allSatisfy { !$0.contains("hunter2") })
  }
}
