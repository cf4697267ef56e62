internal import VaultCrypto

extension MessageCipher {
  /// The bytes of an encrypted message, with the family of forms that they have.
  struct SealedMessage {
    /// The forms that can be told apart before anything is decrypted.
    enum Family {
      case xaes256GCM
      case aesCBC
      /// Without a header; the IV can be static or random.
      case legacy
    }

    /// The largest message of any form.
    static let maximumByteCount =
      MessageCipher.maximumPlaintextByteCount + XAESCryptor.overheadByteCount

    let bytes: [UInt8]
    let family: Family

    /// - Throws: `notEncrypted`, `unknownCryptor`; `decryptionFailed` if the header is cut off.
    init(parsing bytes: [UInt8], on channel: String) throws(MessageCipherError) {
      self.bytes = bytes
      guard bytes.starts(with: Header.magic) else {
        guard !bytes.isEmpty, bytes.count % 16 == 0 else { throw .notEncrypted(on: channel) }
        family = .legacy
        return
      }
      guard bytes.count >= Header.identifier.upperBound else {
        throw .decryptionFailed(on: channel)
      }
      let version = bytes[Header.magic.count]
      guard version == Header.version else {
        throw .unknownCryptor("header version \(version)", on: channel)
      }
      switch Array(bytes[Header.identifier]) {
      case Header.xaes256GCM: family = .xaes256GCM
      case Header.aesCBC: family = .aesCBC
      case let other: throw .unknownCryptor("cryptor \(Header.text(of: other))", on: channel)
      }
    }

    /// Whether a message of the authenticated form has all its parts.
    var isComplete: Bool {
      bytes.count >= XAESCryptor.overheadByteCount
        && Int(bytes[Header.identifier.upperBound]) == XAESCryptor.dataByteCount
    }

    /// The key that a complete message of the authenticated form names.
    var keyID: [UInt8] { Array(bytes[Header.byteCount..<XAESCryptor.nonceStart]) }
  }

  /// The header of PubNub's crypto module, which DataVault's form shares.
  enum Header {
    static let magic = Array("PNED".utf8)
    static let version: UInt8 = 1
    static let aesCBC = Array("ACRH".utf8)
    static let xaes256GCM = Array("DVX1".utf8)
    /// Where the identifier is; the length of the cryptor's data follows.
    static let identifier = 5..<9
    /// Up to the cryptor's data, whose length is in one byte for both cryptors.
    static let byteCount = 10

    /// The header for a cryptor with data of less than 255 bytes.
    static func bytes(_ identifier: [UInt8], dataByteCount: Int) -> [UInt8] {
      magic + [version] + identifier + [UInt8(dataByteCount)]
    }

    /// An identifier that came with a message: as text if it is printable, otherwise hexadecimal.
    static func text(of identifier: [UInt8]) -> String {
      identifier.allSatisfy { 0x21..<0x7F ~= $0 }
        ? "'\(String(decoding: identifier, as: UTF8.self))'" : identifier.hexadecimal
    }
  }
}
