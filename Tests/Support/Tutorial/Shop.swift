// Sources/Shop/Shop.swift
import DataVault
import MessagingQueue
import VaultCrypto
import VaultedDatabase

/// A directory with a vault and messages, and the password of the vault.
struct Shop {
  let home = DataVaultHome("shop-home")
  let orders: Channel

  init() throws {
    orders = try Channel("orders")
  }

  /// In your program the password comes from a person, a file or systemd, never from the source.
  private var credentials: Credentials {
    Credentials(password: SecretBytes(copying: Array("correct horse battery".utf8)))
  }

  /// Makes the vault: from here on only the password opens the messages.
  func secure() async throws {
    try await VaultedDatabase.secure(home, with: credentials)
    print("secured")
  }

  func open() async throws -> MessagingEngine {
    let vault = try await Vault.get(.messaging, in: home.store)
    try await vault.unlock(with: credentials)
    return try await MessagingEngine.start(home, vault: vault)
  }
}
