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
