internal import DataVault
internal import SealedVFS
internal import VaultCrypto

/// Which of a vault's keys its database is under.
struct KeyFit {
  let isPending: Bool
  /// The first 16 bytes are damaged, but pages open.
  let isHeaderDamaged: Bool
}

extension DatabaseKeys {
  /// Whether the database is sealed under the pending key.
  borrowing func pendingFits(_ header: SealedHeader) throws(CryptoError) -> Bool {
    switch pending {
    case .none: false
    case .some(let pending): try header.matches(key: pending)
    }
  }

  /// A copy of the key that the database is sealed under: the pending one after an interrupted change.
  borrowing func key(for header: SealedHeader) throws(CryptoError) -> SecretBytes {
    switch pending {
    case .some(let pending): try header.matches(key: pending) ? pending.copy() : current.copy()
    case .none: current.copy()
    }
  }

  /// Finds the key of the database at the home's path.
  ///
  /// The header shows it. Otherwise the pages show it, under the header that the vault's file id
  /// and keys give.
  ///
  /// - Returns: nil for any other file.
  borrowing func fit(_ home: DataVaultHome, fileID: [UInt8]) throws -> KeyFit? {
    if case .sealed(let header) = try SealedVFS.inspect(home.databasePath, over: home.baseVFS),
      header.fileID == fileID
    {
      if try pendingFits(header) { return KeyFit(isPending: true, isHeaderDamaged: false) }
      if try header.matches(key: current) {
        return KeyFit(isPending: false, isHeaderDamaged: false)
      }
    }
    if try SealedVFS.recognizes(
      home.databasePath, fileID: fileID, key: current, over: home.baseVFS)
    {
      return KeyFit(isPending: false, isHeaderDamaged: true)
    }
    switch pending {
    case .none: return nil
    case .some(let pending):
      let isPending = try SealedVFS.recognizes(
        home.databasePath, fileID: fileID, key: pending, over: home.baseVFS)
      return isPending ? KeyFit(isPending: true, isHeaderDamaged: true) : nil
    }
  }

  /// Runs `body` with the database's key: the pending one after an interrupted change.
  borrowing func withFitting<Result>(
    _ home: DataVaultHome, fileID: [UInt8], _ body: (borrowing SecretBytes) throws -> Result
  ) throws -> Result {
    if try fit(home, fileID: fileID)?.isPending == true {
      switch pending {
      case .some(let pending): return try body(pending)
      case .none: break
      }
    }
    return try body(current)
  }
}
