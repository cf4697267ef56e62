internal import VaultCrypto

/// The keys with which a vault seals its caller's data, newest first.
struct DataKeys: ~Copyable, Sendable {
  static let keyByteCount = 32
  static let maximumCount = 4096

  /// The keys in sequence.
  private let bytes: SecretBytes

  private var count: Int { bytes.byteCount / Self.keyByteCount }

  /// Makes a first random key.
  init(random: RandomSource) {
    self.init(SecretBytes.random(byteCount: Self.keyByteCount, from: random))
  }

  private init(_ bytes: consuming SecretBytes) {
    self.bytes = bytes
  }

  init(parsing text: RawSpan, _ range: Range<Int>) throws(FormatFault) {
    let part = "dataKeys"
    let bytes = try Base64URL.decodeSecret(
      text, try JSONText.plainString(in: text, range, of: part), of: part)
    guard bytes.byteCount > 0, bytes.byteCount % Self.keyByteCount == 0,
      bytes.byteCount <= Self.maximumCount * Self.keyByteCount
    else { throw FormatFault(part, "not 1 to \(Self.maximumCount) keys of 32 bytes") }
    self.init(bytes)
  }

  borrowing func write(to writer: inout ByteWriter) { writer.appendBase64URL(bytes) }

  borrowing func copy() -> DataKeys { DataKeys(bytes.copy()) }

  /// A copy with a new key in front.
  ///
  /// - Throws: `vaultFull` after 4095 calls, because data sealed under a dropped key would be lost.
  borrowing func renewed(random: RandomSource) throws(VaultError) -> DataKeys {
    guard count < Self.maximumCount else {
      throw VaultError(.vaultFull, "the vault already has the maximum of \(count) data keys")
    }
    let new = SecretBytes.random(byteCount: Self.keyByteCount, from: random)
    return DataKeys(
      ByteWriter.secret { writer in
        writer.append(new)
        writer.append(bytes)
      })
  }

  /// The key that seals new data.
  var newest: SecretBytes { bytes.copy(0..<Self.keyByteCount) }

  /// The key with this id; nil if the id belongs to another vault.
  borrowing func key(of id: [UInt8]) throws(CryptoError) -> SecretBytes? {
    for index in 0..<count {
      let start = index * Self.keyByteCount
      let key = bytes.copy(start..<start + Self.keyByteCount)
      if try DataHeader.keyID(of: key) == id { return key }
    }
    return nil
  }

  /// An encryptor for a new stream under the newest key.
  borrowing func encryptor(
    context: [UInt8], random: RandomSource
  ) throws(CryptoError) -> DataEncryptor {
    let header = DataHeader(keyID: try DataHeader.keyID(of: newest), random: random)
    return DataEncryptor(header: header, key: try header.key(under: newest, context: context))
  }

  /// A decryptor for the stream with a header; nil if another vault sealed the stream.
  borrowing func decryptor(
    for header: DataHeader, context: [UInt8]
  ) throws(CryptoError) -> DataDecryptor? {
    switch try key(of: header.keyID) {
    case .none: nil
    case .some(let key): DataDecryptor(key: try header.key(under: key, context: context))
    }
  }
}
