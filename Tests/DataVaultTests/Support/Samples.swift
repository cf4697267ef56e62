import DataVault
import DataVaultTesting
import Testing
import VaultCrypto

/// A secret from text.
func secret(_ text: String) -> SecretBytes {
  SecretBytes(copying: Array(text.utf8))
}

/// Credentials from text.
func credentials(_ password: String, salt: String? = nil) -> Credentials {
  if let salt {
    Credentials(password: secret(password), salt: secret(salt))
  } else {
    Credentials(password: secret(password))
  }
}

extension SecretBytes {
  /// The contents, for comparisons in tests.
  borrowing func array() -> [UInt8] {
    withBytes { bytes in
      (0..<bytes.byteCount).map { bytes.unsafeLoad(fromByteOffset: $0, as: UInt8.self) }
    }
  }

  borrowing func text() -> String { String(decoding: array(), as: UTF8.self) }
}

extension Vault {
  func setText(_ text: String, for name: String) throws(VaultError) {
    try set(secret(text), kind: .string, for: name)
  }

  /// An item's value as text.
  func text(_ name: String) throws(VaultError) -> String {
    try item(name).bytes.text()
  }
}

/// What an operation failed with; nil when it succeeded.
func code(_ body: () async throws -> Void) async -> VaultError.Code? {
  do {
    try await body()
    return nil
  } catch let error as VaultError {
    return error.code
  } catch {
    Issue.record("not a vault's error: \(error)")
    return nil
  }
}
