public import VaultCrypto

extension Vault {
  /// Seals data under a subkey of the vault; the vault does not store the data.
  ///
  /// - Parameter context: at most 1024 bytes that ``decrypt(_:context:)`` must get too, such as the
  ///   place where the data belongs. It is not secret and is not stored.
  /// - Returns: the data's size plus 60 bytes, plus 16 bytes for each 64 KiB after the first.
  /// - Throws: `locked`, `invalidArgument`; the errors of reading.
  public func encrypt(
    _ data: borrowing SecretBytes, context: [UInt8] = []
  ) throws(VaultError) -> [UInt8] {
    var encryptor = try encryptor(context: context)
    let header = encryptor.header
    let sealed = try data.withBytes { (data) throws(VaultError) in try encryptor.update(data) }
    return try header + sealed + encryptor.finish()
  }

  /// Opens data that ``encrypt(_:context:)`` or a ``DataEncryptor`` sealed.
  ///
  /// - Throws: `truncated`, `damaged` (also for another context), `notSealedData`, `newerVersion`,
  ///   `keyMissing` if another vault sealed it; `locked`; the errors of reading.
  public func decrypt(
    _ sealed: [UInt8], context: [UInt8] = []
  ) throws(VaultError) -> SecretBytes {
    let header = Array(sealed.prefix(DataDecryptor.headerByteCount))
    var decryptor = try decryptor(header: header, context: context)
    let body = unsafe sealed.span.bytes.extracting(droppingFirst: header.count)
    let first = try decryptor.update(body)
    let last = try decryptor.finish()
    return ByteWriter.secret { writer in
      first.withBytes { writer.append($0, 0..<$0.byteCount) }
      last.withBytes { writer.append($0, 0..<$0.byteCount) }
    }
  }

  /// Makes an encryptor for a stream.
  ///
  /// - Throws: the errors of ``encrypt(_:context:)``.
  public func encryptor(context: [UInt8] = []) throws(VaultError) -> DataEncryptor {
    try requireUsable(context)
    return try withContents { (open) throws(VaultError) in
      try withCrypto { () throws(CryptoError) in
        try open.contents.dataKeys.encryptor(context: context, random: parameters.random)
      }
    }
  }

  /// Makes a decryptor for a stream.
  ///
  /// - Parameter header: the first 44 bytes of the stream.
  /// - Throws: the errors of ``decrypt(_:context:)``.
  public func decryptor(
    header: [UInt8], context: [UInt8] = []
  ) throws(VaultError) -> DataDecryptor {
    try requireUsable(context)
    let header = try DataHeader(parsing: header)
    return try withContents { (open) throws(VaultError) in
      let decryptor = try withCrypto { () throws(CryptoError) in
        try open.contents.dataKeys.decryptor(for: header, context: context)
      }
      guard let decryptor else {
        throw VaultError(
          .keyMissing, "vault '\(id)' did not seal this data", hint: "open it with another vault")
      }
      return decryptor
    }
  }

  private nonisolated func requireUsable(_ context: [UInt8]) throws(VaultError) {
    guard context.count <= DataHeader.maximumContextByteCount else {
      throw VaultError(
        .invalidArgument, "the context is larger than \(DataHeader.maximumContextByteCount) bytes")
    }
  }
}

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
        new.withBytes { writer.append($0, 0..<Self.keyByteCount) }
        bytes.withBytes { writer.append($0, 0..<$0.byteCount) }
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
