public import VaultCrypto

extension Vault {
  /// Seals data under a subkey of the vault; the vault does not keep it.
  ///
  /// - Parameter context: at most 1024 bytes that must be the same for ``decrypt(_:context:)``, such as
  ///   where the data belongs; not secret, and stored nowhere.
  /// - Returns: 60 bytes more than the data has, and 16 for each 64 KiB of it after the first.
  /// - Throws: `locked`, `invalidArgument`; what reading throws.
  public func encrypt(
    _ data: borrowing SecretBytes, context: [UInt8] = []
  ) throws(VaultError) -> [UInt8] {
    var encryptor = try encryptor(context: context)
    let header = encryptor.header
    let sealed = try data.withBytes { (data) throws(VaultError) in try encryptor.update(data) }
    return try header + sealed + encryptor.finish()
  }

  /// Opens what ``encrypt(_:context:)`` or a stream has sealed.
  ///
  /// - Throws: `truncated`, `damaged` (also for another context), `notSealedData`, `newerVersion`,
  ///   `keyMissing` when another vault has sealed it; `locked`; what reading throws.
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

  /// Begins to seal a stream.
  ///
  /// - Throws: as ``encrypt(_:context:)``.
  public func encryptor(context: [UInt8] = []) throws(VaultError) -> DataEncryptor {
    try requireUsable(context)
    return try withContents { (open) throws(VaultError) in
      try withCrypto { () throws(CryptoError) in
        try open.contents.dataKeys.encryptor(context: context, random: parameters.random)
      }
    }
  }

  /// Begins to open a stream.
  ///
  /// - Parameter header: the first 44 bytes of it.
  /// - Throws: as ``decrypt(_:context:)``.
  public func decryptor(
    header: [UInt8], context: [UInt8] = []
  ) throws(VaultError) -> DataDecryptor {
    try requireUsable(context)
    let header = try DataHeader(parsing: header)
    return try withContents { (open) throws(VaultError) in
      let decryptor = try withCrypto { () throws(CryptoError) in
        try open.contents.dataKeys.decryptor(for: header, context: context)
      }
      switch consume decryptor {
      case .some(let decryptor): return decryptor
      case .none:
        throw VaultError(
          .keyMissing, "vault '\(id)' has not sealed this data", hint: "open it by another vault")
      }
    }
  }

  private nonisolated func requireUsable(_ context: [UInt8]) throws(VaultError) {
    guard context.count <= DataHeader.maximumContextByteCount else {
      throw VaultError(
        .invalidArgument, "the context has more than \(DataHeader.maximumContextByteCount) bytes")
    }
  }
}

/// The keys that a vault seals its caller's data under, newest first.
struct DataKeys: ~Copyable, Sendable {
  static let keyByteCount = 32
  static let maximumCount = 4096

  /// One after the other.
  private let bytes: SecretBytes

  private var count: Int { bytes.byteCount / Self.keyByteCount }

  /// A first key.
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

  borrowing func write(to writer: inout ByteWriter) {
    writer.append("\"")
    writer.appendBase64URL(bytes)
    writer.append("\"")
  }

  borrowing func copy() -> DataKeys { DataKeys(bytes.copy()) }

  /// The same behind a new one.
  ///
  /// - Throws: `vaultFull` after 4095 times: without its key, what was sealed would be lost.
  borrowing func renewed(random: RandomSource) throws(VaultError) -> DataKeys {
    guard count < Self.maximumCount else {
      throw VaultError(.vaultFull, "the vault has \(count) data keys, and no room for another")
    }
    let new = SecretBytes.random(byteCount: Self.keyByteCount, from: random)
    return DataKeys(
      ByteWriter.secret { writer in
        new.withBytes { writer.append($0, 0..<Self.keyByteCount) }
        bytes.withBytes { writer.append($0, 0..<$0.byteCount) }
      })
  }

  /// The key that new data is sealed under.
  var newest: SecretBytes { bytes.copy(0..<Self.keyByteCount) }

  /// The key of this id; nil when it is another vault's.
  borrowing func key(of id: [UInt8]) throws(CryptoError) -> SecretBytes? {
    for index in 0..<count {
      let start = index * Self.keyByteCount
      let key = bytes.copy(start..<start + Self.keyByteCount)
      if try DataHeader.keyID(of: key) == id { return key }
    }
    return nil
  }

  /// What seals a new stream.
  borrowing func encryptor(
    context: [UInt8], random: RandomSource
  ) throws(CryptoError) -> DataEncryptor {
    let header = DataHeader(keyID: try DataHeader.keyID(of: newest), random: random)
    return DataEncryptor(header: header, key: try header.key(under: newest, context: context))
  }

  /// What opens the stream of a header; nil when another vault has sealed it.
  borrowing func decryptor(
    for header: DataHeader, context: [UInt8]
  ) throws(CryptoError) -> DataDecryptor? {
    switch try key(of: header.keyID) {
    case .none: nil
    case .some(let key): DataDecryptor(key: try header.key(under: key, context: context))
    }
  }
}
