import Foundation
import MessageCipher
import VaultCrypto

/// Encrypted messages: changed, or of any bytes, and JSON texts there and back.
///
/// The first byte of the input selects one of these.
final class MessageFixture {
  private static let channel = "orders"
  private static let plaintext = Array(#"{"text":"zwei Bücher","n":[1,2.5e3,null]}"#.utf8)
  private static let forms: [MessageCipher.Form] = [
    .xaes256GCM, .aesCBC, .legacyRandomIV, .legacyStaticIV,
  ]

  /// A cipher for each form, and one that reads three of them.
  private let ciphers: [MessageCipher]
  private let tolerant: MessageCipher
  private let sealed: [[UInt8]]

  init() throws {
    // Not the key of the fixtures, from which the corpus was made.
    let key = SecretBytes(copying: Array(0x80..<0xA0))
    let keys = try Self.forms.map { try MessageCipher.Key($0, key) }
    ciphers = try keys.map { try MessageCipher(writing: $0) }
    tolerant = try MessageCipher(writing: keys[0], alsoReading: [keys[1], keys[2]])
    sealed = try ciphers.map { try $0.encrypt(bytes: Self.plaintext, channel: Self.channel) }
  }

  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard input.count > 1 else { return }
    let rest = UnsafeBufferPointer(rebasing: input.dropFirst())
    switch input[0] & 3 {
    case 0: changed(rest)
    case 1: foreign(Array(rest))
    case 2: thereAndBack(Array(rest))
    default: member(Array(rest))
    }
  }

  /// An authenticated message must be refused after every change.
  private func changed(_ input: UnsafeBufferPointer<UInt8>) {
    guard let edits = Edits(input) else { return }
    let number = Int(edits.mode) % Self.forms.count
    var message = sealed[number]
    edits.apply(to: &message)
    let opened = outcome { try ciphers[number].decrypt(bytes: message, channel: Self.channel) }
    let isUnchanged = message == sealed[number]
    require(!isUnchanged || opened?.bytes == Self.plaintext, "an unchanged message is refused")
    require(number != 0 || isUnchanged == (opened != nil), "a changed message is accepted")
    let other = outcome { try tolerant.decrypt(bytes: message, channel: "other") }
    require(other?.form != .xaes256GCM, "a message of another channel is accepted")
  }

  /// Bytes of any kind, as they are and as base64: an authenticated message cannot be made without
  /// the key.
  private func foreign(_ input: [UInt8]) {
    let text = Array("\"\(Data(input).base64EncodedString())\"".utf8)
    let results = [
      outcome { try tolerant.decrypt(bytes: input, channel: Self.channel) },
      outcome { try tolerant.decrypt(text, channel: Self.channel) },
      outcome { try tolerant.decrypt(input, channel: Self.channel) },
    ]
    for result in results {
      require(result?.form != .xaes256GCM, "a forged message is accepted")
      require(result.map { $0.bytes.count <= input.count } ?? true, "a plaintext is too long")
    }
    for result in results.dropFirst() {
      require(result.map { isJSON($0.bytes) != false } ?? true, "a result is not JSON")
    }
  }

  /// A text comes back byte for byte, and is JSON for Foundation's parser too.
  private func thereAndBack(_ text: [UInt8]) {
    for cipher in ciphers {
      let message = outcome { try cipher.encrypt(text, channel: Self.channel) }
      guard let message else { continue }
      require(isJSON(text) != false, "a text is accepted that is not JSON")
      let opened = outcome { try cipher.decrypt(message, channel: Self.channel) }
      require(opened?.bytes == text, "a message comes back changed")
    }
  }

  private func member(_ object: [UInt8]) {
    let cipher = ciphers[Int(object[0]) % ciphers.count]
    for name in ["a", "pn_other", "ü", ""] {
      let sealed = outcome { try cipher.encrypt(member: name, of: object, channel: Self.channel) }
      guard let sealed else { continue }
      require(isJSON(sealed) != false, "an object is no JSON afterwards")
      let opened = outcome {
        try cipher.decrypt(member: name, of: sealed, channel: Self.channel)
      }
      require(opened?.bytes == object, "an object comes back changed")
    }
  }

  /// The result, or nil after an error that the library documents.
  private func outcome<R>(_ body: () throws -> R) -> R? {
    do {
      return try body()
    } catch {
      guard let error = error as? MessageCipherError else { preconditionFailure("\(error)") }
      require(error.code != .libraryFailure, "a failure of the library: \(error)")
      return nil
    }
  }

  /// Whether Foundation's parser takes a text; nil where its rules are others.
  ///
  /// It takes more than the standard, but guesses the encoding, and refuses deep nesting, halves of
  /// surrogate pairs, and numbers that no Double has.
  private func isJSON(_ text: [UInt8]) -> Bool? {
    let isClear = !text.contains(0) && text.first.map { $0 < 0x80 } ?? true
    let isShallow = text.count { $0 == UInt8(ascii: "[") || $0 == UInt8(ascii: "{") } < 500
    let numbers = text.split { !"0123456789.eE+-".utf8.contains($0) }
    let isSmall = numbers.allSatisfy { number in
      let exponent = number.split { $0 == UInt8(ascii: "e") || $0 == UInt8(ascii: "E") }.dropFirst()
      return number.count < 15 && exponent.allSatisfy { $0.count < 3 }
    }
    guard isClear, isShallow, isSmall, !text.contains(UInt8(ascii: "\\")) else { return nil }
    return (try? JSONSerialization.jsonObject(with: Data(text), options: .fragmentsAllowed)) != nil
  }
}
