import AccessControl
import ApplicationStore
import DataVault
import Foundation
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingServer

/// The guide to the client: docs/how-to/use-the-swift-client.md.
struct SwiftProgramTests {
  @Test func `the guide shows the program that is compiled here`() throws {
    let file = try Repository.text("Tests/Support/ChatProgram/Chat.swift")
    #expect(
      try Repository.text("docs/how-to/use-the-swift-client.md").contains("```swift\n\(file)```\n"))
    #expect(file.split(separator: "\n", omittingEmptySubsequences: false).count <= 61)
  }

  @Test(.enabled(if: PubNubClient.python != nil, "pubnub is not installed"))
  func `the guide's program exchanges encrypted messages with the stock client`() async throws {
    let scratch = ScratchFolder()
    let home = scratch.path("home")
    let store = FileVaultStore(home: FilePath(home))
    let vault = try await Vault.create(
      VaultID("chat"), in: store, credentials: credentials("correct horse battery"))
    for (name, text) in [
      ("cipher-key", "the key of the clients"), ("login-user", "ana"),
      ("login-password", "a password"),
    ] {
      try await vault.set(secret(text), kind: .string, for: name)
    }
    try await ServerFixture.run { server in
      for channel in ["ours", "theirs"] {
        try await server.grant([.read, .write], channel, .user(Name("ana")))
        let stock = try server.store.keys.hasher.hash(
          Array("stock".utf8), of: server.closed.record.id)
        try await server.grant([.read, .write], channel, .authKey(stock))
      }
      // The server knows the grants when it knows the user.
      try await server.put(user: "ana", "a password")
      let keys = server.closed
      async let program = PubNubClient.onBlockingThread {
        try Program.run(
          Program.built("Chat"), [home, server.url, keys.subscribe, keys.publish, "bye"],
          input: Array("correct horse battery".utf8))
      }
      try await PubNubClient.check(
        "encryption", server, keys, "auth=stock", "cipher=the key of the clients",
        "form=aesCBC", #"values=["bye"]"#)
      let chat = try await program
      #expect(chat.text == "status: connected\nuser: bye\n", "\(chat.errors)")
    }
  }
}
