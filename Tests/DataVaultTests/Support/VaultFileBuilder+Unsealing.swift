import Foundation
import Testing
import VaultCrypto

extension VaultFileBuilder {
  /// Whether a key opens the member of a file, `key` or `contents`.
  static func unseals(_ member: String, of file: [UInt8]?, key: [UInt8]) throws -> Bool {
    let parts = try JSONSerialization.jsonObject(with: Data(try #require(file)))
    let jwe = try #require((parts as? [String: Any])?[member] as? [String: Any])
    func part(_ name: String) throws -> String { try #require(jwe[name] as? String) }
    let aad = try part("protected") + (member == "key" ? "" : "." + part("aad"))
    let box = AES256GCM.SealedBox(
      ciphertext: Base64.bytes(try part("ciphertext")), tag: Base64.bytes(try part("tag")))
    do throws(CryptoError) {
      _ = try AES256GCM.open(
        box, key: SecretBytes(copying: key), nonce: Base64.bytes(jwe["iv"] as? String ?? ""),
        authenticating: Array(aad.utf8).span.bytes)
      return true
    } catch {
      return false
    }
  }
}
