package import AccessControl
internal import DataVault
internal import Synchronization
internal import VaultCrypto

/// The keys of the tables, derived from one item of the vault `messaging`.
///
/// See `docs/reference/application-tables.md`, "Keys".
package final class ApplicationKeys: Sendable {
  /// The name of the item: 32 random bytes, which are never replaced.
  package static let itemName = "datavaultd-key"

  private static let byteCount = 32
  private static let purpose = Array("datavaultd/secret-keys".utf8)

  /// Makes the hashes of auth keys.
  package let hasher: AuthKeyHasher

  /// Makes and checks the verifiers of passwords.
  package let realm: RealmHasher

  /// Tells whether the item is that of the tables.
  let check: [UInt8]

  private let cipher: Mutex<XAES256GCM>
  private let random: RandomSource

  init(
    item: borrowing SecretBytes, iterationCount: Int = RealmHasher.standardIterationCount,
    random: RandomSource
  ) throws(CryptoError) {
    func key(_ info: [UInt8], _ byteCount: Int = 32) throws(CryptoError) -> SecretBytes {
      try HKDF.sha512(inputKey: item, salt: [], info: info, byteCount: byteCount)
    }
    hasher = AuthKeyHasher(key: try key(Array("datavaultd/auth-keys".utf8)))
    realm = RealmHasher(
      key: try key(Array("datavaultd/users".utf8)), iterationCount: iterationCount, random: random)
    cipher = Mutex(try XAES256GCM(key: key(Self.purpose)))
    let check = try key(Array("datavaultd/check".utf8), 16)
    self.check = unsafe check.withUnsafeBytes { unsafe Array($0) }
    self.random = random
  }

  /// The keys of the vault's item.
  ///
  /// - Parameters:
  ///   - vault: the vault `messaging`, unlocked.
  ///   - isInUse: whether the tables already hold what was made with the item. If not, the item is
  ///     made, or that is used which another process makes at the same time.
  /// - Throws: `keyMissing`, `wrongKey`, `vault`.
  static func read(
    from vault: Vault, isInUse: Bool, iterationCount: Int, random: RandomSource
  ) async throws(ApplicationStoreError) -> ApplicationKeys {
    do {
      let item =
        if isInUse {
          try await vault.item(itemName)
        } else {
          try await vault.item(
            itemName, orStoring: SecretBytes.random(byteCount: byteCount, from: random),
            kind: .binary)
        }
      guard item.kind == .binary, item.bytes.byteCount == byteCount else { throw wrongKey(vault) }
      return try ApplicationKeys(
        item: item.bytes, iterationCount: iterationCount, random: random)
    } catch let error as VaultError where error.code == .itemNotFound {
      throw ApplicationStoreError(
        .keyMissing,
        "vault '\(vault.id)' has lost the item '\(itemName)', the key of the applications' tables",
        hint: "restore the vault from a backup that has the item", underlying: error)
    } catch {
      throw ApplicationStoreError(translating: error, during: "reading the applications' key")
    }
  }

  static func wrongKey(_ vault: Vault) -> ApplicationStoreError {
    ApplicationStoreError(
      .wrongKey,
      "the item '\(itemName)' in vault '\(vault.id)' is not the key of the applications' tables",
      hint: "restore the vault and the database from the same backup")
  }

  // MARK: - Secret keys

  /// A new secret key: `sec-c-` and 43 characters of base64url.
  func makeSecretKey() -> SecretBytes {
    let key = SecretBytes.random(byteCount: Self.byteCount, from: random)
    let prefix = Array("sec-c-".utf8)
    let byteCount = prefix.count + Base64URL.encodedCount(key.byteCount)
    return unsafe SecretBytes(byteCount: byteCount) { target in
      unsafe target.copyBytes(from: prefix)
      key.withBytes { bytes in
        _ = unsafe Base64URL.encode(
          bytes, 0..<bytes.byteCount,
          into: UnsafeMutableRawBufferPointer(rebasing: target[prefix.count...]))
      }
    }
  }

  /// Encrypts a secret key for the row of its application: nonce, ciphertext and tag.
  func seal(
    _ secretKey: borrowing SecretBytes, of id: ApplicationID, name: String
  ) throws(CryptoError) -> [UInt8] {
    let nonce = random.bytes(count: XAES256GCM.nonceByteCount)
    let associated = Self.associatedData(id, name)
    var message = secretKey.copy()
    var tag = [UInt8](repeating: 0, count: XAES256GCM.tagByteCount)
    try cipher.withLock { (cipher) throws(CryptoError) in
      try unsafe message.withUnsafeMutableBytes { (message) throws(CryptoError) in
        var message = unsafe MutableRawSpan(_unsafeBytes: message)
        var tag = tag.mutableSpan
        var tagBytes = unsafe tag.mutableBytes
        try unsafe cipher.seal(
          &message, nonce: nonce.span.bytes, authenticating: associated.span.bytes, tag: &tagBytes)
      }
    }
    let ciphertext = unsafe message.withUnsafeBytes { unsafe Array($0) }
    return nonce + ciphertext + tag
  }

  /// Decrypts the secret key in the row of an application.
  ///
  /// - Throws: `damaged` if the row, its id or its name is not as it was stored.
  func open(
    _ sealed: [UInt8], of id: ApplicationID, name: String
  ) throws(ApplicationStoreError) -> SecretBytes {
    let tagStart = sealed.count - XAES256GCM.tagByteCount
    guard tagStart >= XAES256GCM.nonceByteCount else { throw .damaged("the secret key", of: name) }
    let nonce = Array(sealed[..<XAES256GCM.nonceByteCount])
    let tag = Array(sealed[tagStart...])
    let associated = Self.associatedData(id, name)
    var message = SecretBytes(copying: Array(sealed[XAES256GCM.nonceByteCount..<tagStart]))
    do throws(CryptoError) {
      try cipher.withLock { (cipher) throws(CryptoError) in
        try unsafe message.withUnsafeMutableBytes { (message) throws(CryptoError) in
          var message = unsafe MutableRawSpan(_unsafeBytes: message)
          try unsafe cipher.open(
            &message, nonce: nonce.span.bytes, authenticating: associated.span.bytes,
            tag: tag.span.bytes)
        }
      }
    } catch {
      guard error.code == .authenticationFailed else {
        throw ApplicationStoreError(translating: error, during: "opening a secret key")
      }
      throw .damaged("the secret key", of: name)
    }
    return message
  }

  private static func associatedData(_ id: ApplicationID, _ name: String) -> [UInt8] {
    purpose + [0] + id.bytes + Array(name.utf8)
  }
}
