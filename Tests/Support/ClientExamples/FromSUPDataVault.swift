import DataVault
import MessagingClient
import VaultCrypto

/// What an application of SUPDataVault and SUPMessageClient does, with this library.
func messagesFromSUP(pin: consuming SecretBytes, in store: any VaultStore) async throws {
  // SUPDataVault getVault: and unlock:withSalt:
  let vault = try await Vault.get(VaultID("sales"), in: store)
  try await vault.unlock(with: Credentials(password: pin))

  // getString: for the user and the password of the server
  let secrets = try await ClientSecrets(vault)
  var configuration = STOMPConfiguration(
    server: "stomps://messages.example.com:61614", application: "sales",
    login: secrets.loginHandler.map { STOMPLogin.handler($0) })
  configuration.cipher = secrets.cipher

  // SUPMessageClient start; here the first use connects
  let client = try STOMPClient(configuration)

  // A message to the server
  try await client.send(Array("order 1".utf8), to: "/queue/orders", contentType: "text/plain")

  // Messages from the server, and onConnectionStatusChanged of SUPApplicationCallback
  for try await event in try await client.subscribe(to: "/queue/ana") {
    switch event {
    case .message(let message):
      print(try message.content.get())
      try await message.acknowledge()
    case .status(.disconnected): print("the connection is lost")
    case .status: break
    }
  }

  // SUPMessageClient stop, SUPDataVault lock
  await client.close()
  await vault.lock()
}
