import DataVault
import MessageCipher
import MessagingClient
import SystemPackage
import VaultCrypto

/// Exchanges encrypted messages with PubNub's own clients, until one says "bye".
///
///     Chat HOME SERVER SUBSCRIBE-KEY PUBLISH-KEY TEXT < password
@main struct Chat {
  static func main() async {
    do {
      guard CommandLine.arguments.count == 6 else {
        return print("usage: Chat HOME SERVER SUBSCRIBE-KEY PUBLISH-KEY TEXT < password")
      }
      try await chat(CommandLine.arguments)
    } catch {
      print("Chat: \(error)")
    }
  }

  static func chat(_ arguments: [String]) async throws {
    let vault = try await unlockedVault(in: FilePath(arguments[1]))
    let client = try await client(arguments[2], arguments[3], arguments[4], vault)

    try await client.publish(arguments[5], to: "ours")
    for try await event in try client.subscribe(to: ["theirs"], after: Timetoken(rawValue: 1)) {
      switch event {
      case .message(let message):
        let text = try message.decode(String.self)
        print("\(message.publisher ?? "unknown"): \(text)")
        if text == "bye" { return }
      case .status(let status): print("status: \(status)")
      default: break
      }
    }
  }

  /// The vault "chat", opened with the password on the standard input.
  static func unlockedVault(in home: FilePath) async throws -> Vault {
    let vault = try await Vault.get(VaultID("chat"), in: FileVaultStore(home: home))
    try await vault.unlock(with: Credentials(password: SecretSource.descriptor(0).read()))
    return vault
  }

  /// A client with what the vault keeps: who it is, and the user and password that answer the server's challenge.
  static func client(
    _ server: String, _ subscribeKey: String, _ publishKey: String, _ vault: Vault
  ) async throws -> PubNubClient {
    var configuration = PubNubConfiguration(
      server: server, subscribeKey: subscribeKey, publishKey: publishKey,
      secrets: try await ClientSecrets(vault))
    // PubNub's own form, which its clients can read. Among clients of this library, the item "message-key" alone is
    // better: it is authenticated.
    let key = try await vault.item("cipher-key", kind: .string)
    configuration.cipher = try MessageCipher(writing: MessageCipher.Key(.aesCBC, key.bytes))
    return try PubNubClient(configuration)
  }
}
