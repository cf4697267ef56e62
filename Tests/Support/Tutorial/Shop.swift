// Sources/Shop/Shop.swift
import DataVault
import MessagingQueue
import VaultCrypto
import VaultedDatabase

/// A folder with a vault and messages, and what opens it.
struct Shop {
  let home = DataVaultHome("shop-home")
  let orders: Channel

  init() throws {
    orders = try Channel("orders")
  }

  /// In a program of yours it comes from a person, a file or systemd, and is never in the source.
  private var credentials: Credentials {
    Credentials(password: SecretBytes(copying: Array("correct horse battery".utf8)))
  }

  /// Makes the vault: from here on the messages open with the password alone.
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
