import DataVault
import Foundation
import TestSupport
import VaultCrypto

/// Writes vault files by `docs/reference/vault-format.md`, independently of the code under test, with any
/// rule broken on demand.
struct VaultFileBuilder {
  var id = "messaging"
  var password = "password"
  var callerSalt = ""
  var iterationCount = 10
  var isSecured = true
  var binding = "null"
  var databases = "null"
  var dataKeys = Base64.url([UInt8](repeating: 0xDA, count: 32))
  var items = #"{"name":{"string":"value"}}"#

  // The parts of the file that faults change.
  var p2s = Base64.url(Array(1...16))
  var slotName = "password"
  var algorithm = "PBES2-HS512+A256KW"
  var statedIterationCount: String?
  var extraSlots = ""
  /// The key that the password slot wraps.
  var wrappedByPassword = Self.contentKey
  var keyProtected = #"{"enc":"A256GCM","cty":"jwk+json"}"#
  var jwkType = "oct"
  var contentsProtected = #"{"alg":"dir","enc":"A256GCM"}"#
  var clear =
    #"{"version":1,"vault":"ID","secured":SECURED,"retryLimit":0,"#
    + #""binding":BINDING,"keyDigest":"DIGEST"}"#
  var plaintext =
    #"{"generation":1,"passwordSetAt":0,"policy":POLICY,"databases":DATABASES,"#
    + #""dataKeys":"DATAKEYS","items":ITEMS}"#
  var policy =
    #"{"standardPassword":true,"minimumLength":8,"digit":false,"upper":false,"lower":false,"#
    + #""special":false,"minimumUniqueCharacters":0,"expirationDays":0,"lockTimeoutSeconds":0}"#
  /// Edits the text of `key` before its digest is computed.
  var editKey: (String) -> String = { $0 }
  /// Edits the text of `contents`.
  var editContents: (String) -> String = { $0 }
  /// Edits the head of the file before its digest is computed.
  var editHead: (String) -> String = { $0 }

  static let contentKey = [UInt8](repeating: 0xC0, count: 32)
  static let vaultKey = [UInt8](repeating: 0x7A, count: 32)

  func file() throws -> [UInt8] {
    let contentKey = SecretBytes(copying: Self.contentKey)
    let vaultKey = SecretBytes(copying: Self.vaultKey)
    let key = editKey(try keyText(contentKey: contentKey, vaultKey: vaultKey))
    let contents = editContents(try contentsText(key: key, vaultKey: vaultKey))
    return Self.seal(editHead("{\"key\":\(key),\"contents\":\(contents),"))
  }

  /// The bytes of a head followed by its digest.
  static func seal(_ head: String) -> [UInt8] { seal(Array(head.utf8)) }

  static func seal(_ head: [UInt8]) -> [UInt8] {
    head + "\"digest\":\"\(Base64.url(digest(head)))\"}\n".utf8
  }

  private func keyText(
    contentKey: borrowing SecretBytes, vaultKey: borrowing SecretBytes
  ) throws -> String {
    let salt = Array("PBES2-HS512+A256KW".utf8) + [0] + Base64.bytes(p2s) + Array(callerSalt.utf8)
    let wrappingKey = try PBKDF2.sha512(
      password: secret(password), salt: salt, iterationCount: iterationCount, byteCount: 32)
    let wrapped = try AES256KeyWrap.wrap(SecretBytes(copying: wrappedByPassword), with: wrappingKey)
    let count = statedIterationCount ?? String(iterationCount)
    let header =
      algorithm.hasPrefix("PBES2")
      ? #"{"alg":"\#(algorithm)","kid":"\#(slotName)","p2s":"\#(p2s)","p2c":\#(count)}"#
      : #"{"alg":"\#(algorithm)","kid":"\#(slotName)"}"#
    let slot = #"{"header":\#(header),"encrypted_key":"\#(Base64.url(wrapped))"}"#
    let protected = Base64.url(Array(keyProtected.utf8))
    let jwk = #"{"kty":"\#(jwkType)","k":"\#(Base64.url(vaultKey.array()))"}"#
    let (nonce, box) = try Self.seal(jwk, key: contentKey, aad: protected)
    return #"{"protected":"\#(protected)","recipients":[\#(slot)\#(extraSlots)],"#
      + #""iv":"\#(nonce)","ciphertext":"\#(Base64.url(box.ciphertext))","#
      + #""tag":"\#(Base64.url(box.tag))"}"#
  }

  /// An additional slot, for ``extraSlots``.
  static func slot(
    _ kid: String, algorithm: String = "A256KW", more: String = "", key: [UInt8],
    wrapping contentKey: [UInt8] = Self.contentKey
  ) throws -> String {
    let wrapped = try AES256KeyWrap.wrap(
      SecretBytes(copying: contentKey), with: SecretBytes(copying: key))
    return #",{"header":{"alg":"\#(algorithm)","kid":"\#(kid)"\#(more)},"#
      + #""encrypted_key":"\#(Base64.url(wrapped))"}"#
  }

  private func contentsText(key: String, vaultKey: borrowing SecretBytes) throws -> String {
    let clear = clear.replacing("ID", with: id).replacing("SECURED", with: "\(isSecured)")
      .replacing("BINDING", with: binding)
      .replacing("DIGEST", with: Base64.url(Self.digest(Array(key.utf8))))
    let plaintext = plaintext.replacing("POLICY", with: policy)
      .replacing("DATABASES", with: databases).replacing("DATAKEYS", with: dataKeys)
      .replacing("ITEMS", with: items)
    let protected = Base64.url(Array(contentsProtected.utf8))
    let aad = Base64.url(Array(clear.utf8))
    let (nonce, box) = try Self.seal(plaintext, key: vaultKey, aad: protected + "." + aad)
    return #"{"protected":"\#(protected)","aad":"\#(aad)","iv":"\#(nonce)","#
      + #""ciphertext":"\#(Base64.url(box.ciphertext))","tag":"\#(Base64.url(box.tag))"}"#
  }

  private static func seal(
    _ plaintext: String, key: borrowing SecretBytes, aad: String
  ) throws -> (nonce: String, box: AES256GCM.SealedBox) {
    let nonce = RandomSource.system.bytes(count: 12)
    let box = try AES256GCM.seal(
      Array(plaintext.utf8).span.bytes, key: key, nonce: nonce,
      authenticating: Array(aad.utf8).span.bytes)
    return (Base64.url(nonce), box)
  }

  static func digest(_ bytes: [UInt8]) -> [UInt8] { (try? SHA256.digest(bytes.span.bytes)) ?? [] }
}

/// Base64url from Foundation.
enum Base64 {
  static func url(_ bytes: [UInt8]) -> String {
    var text = Data(bytes).base64EncodedData()
    while text.last == UInt8(ascii: "=") { text.removeLast() }
    // In place, because a text can have many megabytes.
    for (standard, safe) in [("+", "-"), ("/", "_")] as [(Unicode.Scalar, Unicode.Scalar)] {
      var start = text.startIndex
      while let found = text[start...].firstIndex(of: UInt8(ascii: standard)) {
        text[found] = UInt8(ascii: safe)
        start = found + 1
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  static func bytes(_ text: String) -> [UInt8] {
    let padded =
      text.replacing("-", with: "+").replacing("_", with: "/")
      + String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
    return Array(Data(base64Encoded: padded) ?? Data())
  }
}
