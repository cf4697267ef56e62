internal import VaultCrypto

extension VaultError {
  static func locked(_ id: VaultID) -> VaultError {
    VaultError(.locked, "vault '\(id)' is locked", hint: "unlock it with its password first")
  }

  static func doesNotExist(_ id: VaultID, in store: any VaultStore) -> VaultError {
    VaultError(
      .doesNotExist, "there is no vault '\(id)' (\(store.location(of: id)))",
      hint: "create it, or check that this is the right home")
  }

  static func alreadyExists(_ id: VaultID, in store: any VaultStore) -> VaultError {
    VaultError(
      .alreadyExists, "vault '\(id)' exists already (\(store.location(of: id)))",
      hint: "unlock it, or delete it first")
  }

  /// A file that breaks a rule of the format, or follows another one.
  static func refused(
    _ fault: FormatFault, _ id: VaultID, in store: any VaultStore
  ) -> VaultError {
    if let version = fault.otherVersion {
      return VaultError(
        .newerVersion,
        "vault '\(id)' (\(store.location(of: id))) has format version \(version), this software reads \(ClearMembers.version)",
        hint: "use the version of this software that wrote it")
    }
    return VaultError(
      .damaged, "vault '\(id)' (\(store.location(of: id))) is damaged: \(fault)",
      hint: "restore the file from a backup")
  }

  static func crypto(_ error: CryptoError) -> VaultError {
    VaultError(
      .unsupported, "the cryptographic library refused: \(error)", underlying: error)
  }
}

/// Does what the cryptographic library may refuse.
func withCrypto<R: ~Copyable>(
  _ body: () throws(CryptoError) -> R
) throws(VaultError) -> R {
  do throws(CryptoError) {
    return try body()
  } catch {
    throw .crypto(error)
  }
}
