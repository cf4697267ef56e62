import MessageCipher
import TestSupport
import Testing
import VaultCrypto

/// The keys of `Fixtures/messages`, and ciphers under them.
enum Samples {
  static let cipherKey = "correct horse"
  static let channel = "orders"
  static let json = #"{"text":"two books"}"#

  static let forms: [MessageCipher.Form] = [
    .xaes256GCM, .aesCBC, .legacyRandomIV, .legacyStaticIV,
  ]
  static let pubNubForms = forms.filter { !$0.isAuthenticated }

  /// The key of 32 bytes that count from a number.
  static func key(from start: UInt8 = 0, random: RandomSource = .system) throws -> MessageCipher.Key
  {
    try MessageCipher.Key(
      .xaes256GCM, SecretBytes(copying: (start..<start + 32).map { $0 }), random: random)
  }

  /// The sample key of a form.
  static func key(_ form: MessageCipher.Form) throws -> MessageCipher.Key {
    form == .xaes256GCM ? try key() : try MessageCipher.Key(form, secret(cipherKey))
  }

  /// A cipher that writes and reads one form.
  static func cipher(_ form: MessageCipher.Form = .xaes256GCM) throws -> MessageCipher {
    try MessageCipher(writing: key(form))
  }

  /// A cipher that reads everything, with one of the two legacy forms.
  static func tolerantCipher(
    legacy: MessageCipher.Form = .legacyRandomIV
  ) throws -> MessageCipher {
    try MessageCipher(
      writing: key(), alsoReading: [key(from: 0x20), key(.aesCBC), key(legacy)])
  }
}

extension MessageCipher.Decrypted {
  var text: String { String(decoding: bytes, as: UTF8.self) }
}

/// The error that a body throws; nil if it throws none.
func failure(_ body: () throws -> Void) -> MessageCipherError? {
  do {
    try body()
    return nil
  } catch {
    return error as? MessageCipherError
  }
}

/// The code of the error that a body throws.
func code(_ body: () throws -> Void) -> MessageCipherError.Code? { failure(body)?.code }

/// The bytes of a message of base64.
func sealedBytes(_ message: [UInt8]) throws -> [UInt8] {
  try #require(Base64.bytes(String(decoding: message.dropFirst().dropLast(), as: UTF8.self)))
}

/// The message of base64 with these bytes.
func message(_ sealed: [UInt8]) -> [UInt8] { Array("\"\(Base64.text(sealed))\"".utf8) }
