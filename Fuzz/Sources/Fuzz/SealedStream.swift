import VaultCrypto

/// Seals data according to `docs/reference/sealed-data-format.md`, including streams that no writer produces.
struct SealedStream {
  static let byteCount = 65536
  static let dataKeys = [[UInt8](repeating: 1, count: 32), [UInt8](repeating: 2, count: 32)]

  /// One chunk, with the parts of its nonce.
  struct Chunk {
    var plaintext: [UInt8]
    var index: UInt64
    /// 0 for a middle chunk, 1 for the last one.
    ///
    /// Other values are invalid.
    var mark: UInt8
  }

  let header: [UInt8]
  private let key: SecretBytesBox

  /// - Parameter number: the number of the data key, of two.
  init(keyNumber number: Int, context: [UInt8], salt: UInt8 = 0x5A) {
    let dataKey = Self.dataKeys[number]
    let id = Self.derive(dataKey, salt: [], info: Array("datavault/data-id".utf8), byteCount: 8)
    header = Array("DVD".utf8) + [1] + id + [UInt8](repeating: salt, count: 32)
    key = SecretBytesBox(
      Self.derive(
        dataKey, salt: header, info: Array("datavault/data".utf8) + [0] + context, byteCount: 32))
  }

  /// The chunks that a writer makes from these bytes.
  static func chunks(of plaintext: [UInt8]) -> [Chunk] {
    let count = max(1, (plaintext.count + byteCount - 1) / byteCount)
    return (0..<count).map { index in
      Chunk(
        plaintext: Array(plaintext.dropFirst(index * byteCount).prefix(byteCount)),
        index: UInt64(index), mark: index == count - 1 ? 1 : 0)
    }
  }

  func seal(_ chunks: [Chunk]) -> [UInt8] {
    chunks.reduce(into: header) { sealed, chunk in
      var nonce = [UInt8](repeating: 0, count: 12)
      for place in 0..<8 {
        nonce[10 - place] = UInt8(truncatingIfNeeded: chunk.index >> (8 * place))
      }
      nonce[11] = chunk.mark
      guard
        let box = try? AES256GCM.seal(
          chunk.plaintext.span.bytes, key: key.bytes, nonce: nonce,
          authenticating: [UInt8]().span.bytes)
      else { preconditionFailure("a chunk cannot be sealed") }
      sealed += box.ciphertext + box.tag
    }
  }

  private static func derive(
    _ key: [UInt8], salt: [UInt8], info: [UInt8], byteCount: Int
  ) -> [UInt8] {
    guard
      let derived = try? HKDF.sha512(
        inputKey: SecretBytes(copying: key), salt: salt, info: info, byteCount: byteCount)
    else { preconditionFailure("a key cannot be derived") }
    return derived.withUnsafeBytes { Array($0) }
  }
}

/// A key with several owners.
final class SecretBytesBox {
  let bytes: SecretBytes

  init(_ bytes: [UInt8]) {
    self.bytes = SecretBytes(copying: bytes)
  }
}
