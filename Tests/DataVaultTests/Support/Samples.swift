import DataVault
import DataVaultTesting
import Testing
import VaultCrypto

/// Makes a secret from text.
func secret(_ text: String) -> SecretBytes {
  SecretBytes(copying: Array(text.utf8))
}

/// Makes credentials from text.
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

/// The error code of an operation; nil when it succeeds.
func code(_ body: () async throws -> Void) async -> VaultError.Code? {
  do {
    try await body()
    return nil
  } catch let error as VaultError {
    return error.code
  } catch {
    Issue.record("not a VaultError: \(error)")
    return nil
  }
}
