internal import VaultCrypto

/// The first 44 bytes of sealed data, as `docs/reference/sealed-data-format.md` specifies.
struct DataHeader {
  static let byteCount = 44
  static let keyIDByteCount = 8
  static let saltByteCount = 32
  /// The limit leaves room in OpenSSL's HKDF, which takes 32 KiB for all inputs, and 2 KiB in its
  /// first releases.
  static let maximumContextByteCount = 1024
  private static let magic = Array("DVD".utf8)
  private static let version: UInt8 = 1

  let bytes: [UInt8]
  var keyID: [UInt8] { Array(bytes[4..<12]) }

  /// A header for new data.
  init(keyID: [UInt8], random: RandomSource) {
    bytes = Self.magic + [Self.version] + keyID + random.bytes(count: Self.saltByteCount)
  }

  /// Parses a header.
  ///
  /// - Throws: `truncated`, `notSealedData`, `newerVersion`.
  init(parsing bytes: [UInt8]) throws(VaultError) {
    guard bytes.count >= Self.byteCount else { throw .truncatedData }
    guard bytes.starts(with: Self.magic) else {
      throw VaultError(.notSealedData, "the data was not sealed by a vault")
    }
    guard bytes[Self.magic.count] == Self.version else {
      throw VaultError(
        .newerVersion,
        "the data has format version \(bytes[Self.magic.count]); this software reads \(Self.version)",
        hint: "open it with the version of this software that sealed it")
    }
    self.bytes = Array(bytes.prefix(Self.byteCount))
  }

  /// The key for this data alone, derived from a data key.
  func key(under dataKey: borrowing SecretBytes, context: [UInt8]) throws(CryptoError)
    -> SecretBytes
  {
    try HKDF.sha512(
      inputKey: dataKey, salt: bytes, info: Array("datavault/data".utf8) + [0] + context,
      byteCount: 32)
  }

  /// The identifier of a data key in headers.
  static func keyID(of dataKey: borrowing SecretBytes) throws(CryptoError) -> [UInt8] {
    let id = try HKDF.sha512(
      inputKey: dataKey, salt: [], info: Array("datavault/data-id".utf8),
      byteCount: keyIDByteCount)
    return unsafe id.withUnsafeBytes { unsafe Array($0) }
  }
}

extension VaultError {
  static var truncatedData: VaultError {
    VaultError(
      .truncated, "the sealed data is truncated",
      hint: "use a complete copy; the part that was read is authentic")
  }

  fileprivate static var damagedData: VaultError {
    VaultError(.damaged, "the sealed data is damaged, or was sealed with another context")
  }
}

/// Seals or opens the chunks of one stream in order.
struct DataChunk: ~Copyable, Sendable {
  static let byteCount = 65536
  static let tagByteCount = AES256GCM.tagByteCount
  static let sealedByteCount = byteCount + tagByteCount

  private let key: SecretBytes
  private var index: UInt32 = 0

  init(key: consuming SecretBytes) {
    self.key = key
  }

  /// Seals the next chunk.
  mutating func seal(_ plaintext: RawSpan, isLast: Bool) throws(VaultError) -> [UInt8] {
    try withCrypto { () throws(CryptoError) in
      let box = try unsafe AES256GCM.seal(
        plaintext, key: key, nonce: nonce(isLast: isLast), authenticating: [UInt8]().span.bytes)
      try advance()
      return box.ciphertext + box.tag
    }
  }

  /// Opens the next chunk.
  ///
  /// - Throws: `truncated` if the last chunk opens only as one in the middle; `damaged`.
  mutating func open(_ sealed: ArraySlice<UInt8>, isLast: Bool) throws(VaultError) -> SecretBytes {
    guard sealed.count >= Self.tagByteCount else { throw .truncatedData }
    let box = AES256GCM.SealedBox(
      ciphertext: Array(sealed.dropLast(Self.tagByteCount)),
      tag: Array(sealed.suffix(Self.tagByteCount)))
    // An empty last chunk is valid only for empty data, so that each plaintext length has one form.
    guard !box.ciphertext.isEmpty || index == 0 else { throw .damagedData }
    do throws(CryptoError) {
      let plaintext = try open(box, isLast: isLast)
      try advance()
      return plaintext
    } catch {
      guard error.code == .authenticationFailed else { throw .crypto(error) }
      if isLast, (try? open(box, isLast: false)) != nil { throw .truncatedData }
      throw .damagedData
    }
  }

  private func open(
    _ box: AES256GCM.SealedBox, isLast: Bool
  ) throws(CryptoError) -> SecretBytes {
    try unsafe AES256GCM.open(
      box, key: key, nonce: nonce(isLast: isLast), authenticating: [UInt8]().span.bytes)
  }

  /// The nonce: the chunk's number in 11 bytes, then 1 for the last chunk or 0.
  private func nonce(isLast: Bool) -> [UInt8] {
    var nonce = [UInt8](repeating: 0, count: AES256GCM.nonceByteCount)
    for place in 0..<4 { nonce[10 - place] = UInt8(truncatingIfNeeded: index >> (8 * place)) }
    nonce[11] = isLast ? 1 : 0
    return nonce
  }

  private mutating func advance() throws(CryptoError) {
    let (next, isTooFar) = index.addingReportingOverflow(1)
    guard !isTooFar else { throw CryptoError(.invalidArgument, in: "sealed data's length") }
    index = next
  }
}

/// Access to sealed data without a vault, under given keys, for a fuzzer.
@_spi(Testing)
public enum DataProbe {
  /// An encryptor for a stream under the first of these keys.
  ///
  /// - Parameter dataKeys: the member of a vault's contents, with its quotation marks.
  public static func encryptor(dataKeys: [UInt8], context: [UInt8]) -> DataEncryptor? {
    guard let keys = keys(dataKeys) else { return nil }
    return try? keys.encryptor(context: context, random: .system)
  }

  /// A decryptor for the stream with this header.
  ///
  /// - Throws: the errors of `Vault.decryptor(header:context:)`.
  public static func decryptor(
    dataKeys: [UInt8], header: [UInt8], context: [UInt8]
  ) throws(VaultError) -> DataDecryptor? {
    let header = try DataHeader(parsing: header)
    guard let keys = keys(dataKeys) else { return nil }
    return try withCrypto { () throws(CryptoError) in
      try keys.decryptor(for: header, context: context)
    }
  }

  private static func keys(_ text: [UInt8]) -> DataKeys? {
    try? DataKeys(parsing: unsafe text.span.bytes, 0..<text.count)
  }
}
