package import DataVault
package import VaultCrypto

/// Makes a secret from text.
package func secret(_ text: String) -> SecretBytes { SecretBytes(copying: Array(text.utf8)) }

/// Makes credentials from text.
package func credentials(_ password: String, salt: String? = nil) -> Credentials {
  if let salt {
    Credentials(password: secret(password), salt: secret(salt))
  } else {
    Credentials(password: secret(password))
  }
}

extension SecretBytes {
  /// The contents, for comparisons in tests.
  package borrowing func array() -> [UInt8] {
    withBytes { bytes in
      (0..<bytes.byteCount).map { bytes.unsafeLoad(fromByteOffset: $0, as: UInt8.self) }
    }
  }

  package borrowing func text() -> String { String(decoding: array(), as: UTF8.self) }
}
