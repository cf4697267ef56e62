import DataVault
import DataVaultTesting
import MessageCipher
import TestSupport
import Testing
import VaultCrypto

@testable import MessageCipherExamples

/// The guide to encrypted messages: docs/how-to/encrypt-messages.md.
@Suite struct DocumentationTests {
  private static func page() throws -> String {
    try Repository.text("docs/how-to/encrypt-messages.md")
  }

  /// The examples are a target on which these tests depend.
  @Test(arguments: ["KeyInAVault", "Orders", "PushMessage", "PubNubClients"])
  func `the code in the guide is compiled`(name: String) throws {
    let example = try Repository.text("Tests/Support/MessageCipherExamples/\(name).swift")
    #expect(try Self.page().contains("```swift\n\(example)```\n"))
  }

  @Test func `the guide lists every error code`() throws {
    let codes = try Repository.text("Sources/MessageCipher/MessageCipherError.swift")
      .matches(of: /static let (\w+) = Code/).map { String($0.output.1) }
    #expect(codes.count == 10)
    let page = try Self.page()
    #expect(codes.filter { !page.contains("`\($0)`") } == [])
  }

  @Test func `two clients with the item of a vault exchange an order`() async throws {
    let vault = try await FastTestVault.create(
      VaultID("app"), in: InMemoryVaultStore(), credentials: credentials("correct horse battery"))
    try await makeMessageKey(in: vault)
    let (alice, bob) = (try await messageCipher(from: vault), try await messageCipher(from: vault))
    let order = Order(item: "two books", count: 2)
    let message = try encrypt(order, with: alice)
    #expect(try decrypt(message, with: bob) == order)
    let stranger = try MessageCipher(key: SecretBytes.random(byteCount: 32))
    #expect(throws: MessageCipherError.self) { try decrypt(message, with: stranger) }
    #expect(try decrypt(Array(#"{"item":"forged","count":1}"#.utf8), with: bob) == nil)

    let push = #"{"pn_gcm":{"notification":1},"pn_other":{"secret":"two books"}}"#
    let sent = try encryptPush(push, with: alice)
    #expect(
      String(decoding: sent, as: UTF8.self).hasPrefix(
        #"{"pn_gcm":{"notification":1},"pn_other":"UE5F"#))
    #expect(String(decoding: try decryptPush(sent, with: bob), as: UTF8.self) == push)
  }

  @Test func `clients exchange messages during each step of a move`() throws {
    let cipherKey = secret("enigma")
    let oldKey = SecretBytes(copying: Array(0..<32))
    let newKey = SecretBytes(copying: Array(32..<64))
    let old = try pubNubCipher(cipherKey: cipherKey)
    let moving = try movingCipher(key: oldKey, cipherKey: cipherKey)
    let moved = try MessageCipher(key: oldKey)
    let renewed = try renewedCipher(newKey: newKey, oldKey: oldKey)
    let readers = [old, moving, moved, renewed]
    let readable = try readers.map { writer in
      let message = try writer.encrypt("1".utf8, channel: "c")
      return readers.map { (try? $0.decrypt(message, channel: "c")) != nil }
    }
    #expect(
      readable == [
        [true, true, false, false], [false, true, true, true], [false, true, true, true],
        [false, false, false, true],
      ])
  }
}
