import DataVault
import MessagingQueue
import VaultCrypto
import VaultedDatabase

/// For example with `DataVaultHome("/var/lib/daemon")`, after `datavault secure`.
func publishAndReceive(in home: DataVaultHome, password: consuming SecretBytes) async throws {
  let vault = try await Vault.get(.messaging, in: home.store)
  try await vault.unlock(with: Credentials(password: password))
  let engine = try await MessagingEngine.start(home, vault: vault)

  let orders = try Channel("orders")
  try await engine.publish(Message(channel: orders, payload: Array("one".utf8)))  // on the disk now

  for delivery in try await engine.receive(from: orders, maximumCount: 10) {
    print("received \(delivery.payload.count) bytes")
    try await engine.acknowledge([delivery.token])
  }
  try await engine.stop()
}
