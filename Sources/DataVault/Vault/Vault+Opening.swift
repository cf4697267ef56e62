internal import VaultCrypto

extension Vault {
  /// The file as it is in the store, checked as far as that goes without a password.
  func readFile() throws(VaultError) -> VaultFile {
    guard let bytes = try store.read(id) else { throw .doesNotExist(id, in: store) }
    return try parse(bytes)
  }

  func parse(_ bytes: [UInt8]) throws(VaultError) -> VaultFile {
    try VaultFile(bytes, of: id, in: store)
  }

  /// Opens a file by its password slot.
  func open(
    _ file: VaultFile, with credentials: borrowing Credentials
  ) throws(VaultError) -> OpenVault {
    try open(file, contentKey: try contentKey(of: file.key, with: credentials))
  }

  func open(
    _ file: VaultFile, contentKey: consuming SecretBytes
  ) throws(VaultError) -> OpenVault {
    do throws(FormatFault) {
      return try OpenVault(file, contentKey: contentKey)
    } catch {
      throw .refused(error, id, in: store)
    }
  }

  /// The content key that the password slot wraps.
  func contentKey(
    of key: KeyEnvelope, with credentials: borrowing Credentials
  ) throws(VaultError) -> SecretBytes {
    for slot in key.slots {
      guard case .password(let salt, let iterationCount) = slot.method else { continue }
      let range = parameters.minimumIterationCount...VaultParameters.maximumIterationCount
      guard range.contains(iterationCount) else {
        throw .refused(
          FormatFault("key slot", "p2c is not from \(range.lowerBound) to \(range.upperBound)"),
          id, in: store)
      }
      do throws(CryptoError) {
        let wrappingKey = try KeySlot.wrappingKey(
          credentials, salt: salt, iterationCount: iterationCount)
        return try AES256KeyWrap.unwrap(slot.wrappedKey, with: wrappingKey)
      } catch {
        guard error.code == .authenticationFailed else { throw .crypto(error) }
        throw VaultError(
          .wrongPassword, "password or salt of vault '\(id)' is wrong",
          hint: "both must be as they were when the password was set")
      }
    }
    throw VaultError(
      .invalidArgument, "vault '\(id)' has no password", hint: "open it by one of its other slots")
  }
}

extension OpenVault {
  /// The content key, when a `key` as read anew still opens with it.
  borrowing func contentKey(fitting key: KeyEnvelope) -> SecretBytes? {
    do throws(FormatFault) {
      _ = try key.vaultKey(contentKey: contentKey)
      return contentKey.copy()
    } catch {
      return nil
    }
  }
}

extension VaultFile {
  /// Takes apart the bytes that a store keeps under an id.
  init(_ bytes: [UInt8], of id: VaultID, in store: any VaultStore) throws(VaultError) {
    do throws(FormatFault) {
      try self.init(parsing: bytes)
      guard clear.vaultID == id.rawValue else {
        throw FormatFault("vault", "the file belongs to a vault of another name")
      }
    } catch {
      throw .refused(error, id, in: store)
    }
  }
}

extension VaultStatus {
  init(_ file: VaultFile, isAuthenticated: Bool) {
    self.init(
      formatVersion: ClearMembers.version, isSecured: file.clear.isSecured,
      retryLimit: file.clear.retryLimit, binding: file.clear.binding,
      slots: file.key.slots.map(Slot.init), isAuthenticated: isAuthenticated)
  }
}

extension VaultStatus.Slot {
  init(_ slot: KeySlot) {
    switch slot.method {
    case .password(_, let iterationCount):
      self.init(kind: .password, name: nil, iterationCount: iterationCount)
    case .recoveryCode(let name):
      self.init(kind: .recoveryCode, name: name, iterationCount: nil)
    case .keyFile(let name):
      self.init(kind: .keyFile, name: name, iterationCount: nil)
    }
  }
}
