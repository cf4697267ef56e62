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
      writer.append(first)
      writer.append(last)
    }
  }

  /// Makes an encryptor for a stream.
  ///
  /// - Throws: the errors of ``encrypt(_:context:)``.
  public func encryptor(context: [UInt8] = []) throws(VaultError) -> DataEncryptor {
    try requireUsable(context)
    return try withContents { (opened) throws(VaultError) in
      try withCrypto { () throws(CryptoError) in
        try opened.contents.dataKeys.encryptor(context: context, random: parameters.random)
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
    return try withContents { (opened) throws(VaultError) in
      let decryptor = try withCrypto { () throws(CryptoError) in
        try opened.contents.dataKeys.decryptor(for: header, context: context)
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
