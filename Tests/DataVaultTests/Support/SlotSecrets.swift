import DataVault
import DataVaultTesting
import TestSupport
import Testing
import VaultCrypto

/// A recovery code and a key file that are the same in all tests and fixtures.
enum SlotSecrets {
  /// The bytes 01 to 14 as a code; computed by `Tests/ReferenceReaders/vault_reader.py`.
  static let codeText = "0410-6105-0R3G-G28A-1C60-T3GF-208H-44RM-W4QG"
  /// HKDF-SHA-512 of those bytes; computed by Python's hmac.
  static let codeKey = Hexadecimal.bytes(
    "14fa5d090317df967de2662a0faa0c47d1f3972a58cf3fcf812754f2600a63d0")
  /// The bytes 20 to 3F, which are printable.
  static let keyFile: [UInt8] = Array(0x20...0x3F)

  static func code(_ text: String = codeText) throws -> RecoveryCode {
    try RecoveryCode(parsing: secret(text))
  }

  static func key(_ bytes: [UInt8] = keyFile) -> VaultSecret {
    .keyFile(SecretBytes(copying: bytes))
  }
}

enum Hexadecimal {
  static func bytes(_ text: String) -> [UInt8] {
    stride(from: 0, to: text.count, by: 2).map { offset in
      UInt8(text.dropFirst(offset).prefix(2), radix: 16) ?? 0
    }
  }
}

extension VaultStatus {
  /// The identifiers of the slots, in order.
  var slotIdentifiers: [String] { slots.map(\.identifier) }
}

extension InMemoryVaultStore {
  /// The error of opening the messaging vault from another object; nil if it opens and has the item.
  func refusal(_ secret: consuming VaultSecret) async throws -> VaultError.Code? {
    let vault = try await FastTestVault.get(.messaging, in: self)
    do throws(VaultError) {
      try await vault.unlock(with: secret)
    } catch {
      #expect(await vault.isLocked)
      return error.code
    }
    #expect(try await vault.text("name") == "value")
    return nil
  }
}
