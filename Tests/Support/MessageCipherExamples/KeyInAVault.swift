import DataVault
import MessageCipher
import VaultCrypto

/// Makes the key, once, in the first client's vault.
func makeMessageKey(in vault: Vault) async throws {
  try await vault.set(SecretBytes.random(byteCount: 32), kind: .binary, for: "message-key")
}

/// The cipher of a client, whose vault is unlocked.
func messageCipher(from vault: Vault) async throws -> MessageCipher {
  let key = try await vault.item("message-key", kind: .binary)
  return try MessageCipher(key: key.bytes)
}
