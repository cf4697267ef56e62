internal import FileLayer
internal import VaultCrypto

/// A vault in its unlocked state, as read from or written to its store.
struct OpenVault: ~Copyable, Sendable {
  /// The key that each slot wraps.
  let contentKey: SecretBytes
  /// The key that seals the contents.
  let vaultKey: SecretBytes
  let key: KeyEnvelope
  let clear: ClearMembers
  let contents: VaultContents
  /// Identifies the file that this state was read from or written to.
  let tail: FileTail

  /// Opens a file with the content key of a slot.
  init(_ file: VaultFile, contentKey: consuming SecretBytes) throws(FormatFault) {
    let vaultKey = try file.key.vaultKey(contentKey: contentKey)
    let text = try file.contents.open(with: vaultKey)
    let contents = try text.withBytes { (text) throws(FormatFault) in
      try VaultContents(parsing: text)
    }
    guard (contents.databases == nil) == (file.clear.binding == nil) else {
      throw FormatFault("databases", "do not fit the binding")
    }
    self.contentKey = contentKey
    self.vaultKey = vaultKey
    self.contents = contents
    key = file.key
    clear = file.clear
    tail = file.tail
  }

  init(_ draft: consuming VaultDraft, tail: FileTail) {
    contentKey = draft.contentKey
    vaultKey = draft.vaultKey
    key = draft.key
    clear = draft.clear
    contents = draft.contents
    self.tail = tail
  }

  /// The content key, if it still opens the `key` that was just read.
  borrowing func contentKey(fitting key: KeyEnvelope) -> SecretBytes? {
    key.opens(with: contentKey) ? contentKey.copy() : nil
  }

  /// Refuses a password that the policy forbids or that has expired.
  ///
  /// - Throws: the rule's own error.
  borrowing func requireUsable(
    _ secret: borrowing VaultSecret, of id: VaultID, now: UnixTime
  ) throws(VaultError) {
    switch secret {
    case .password(let credentials):
      try contents.policy.check(credentials, for: .unlocking, of: id)
      try contents.policy.checkAge(passwordSetAt: contents.passwordSetAt, now: now, of: id)
    default: return
    }
  }

  /// A copy to change and write; if the write fails, this state is unchanged.
  borrowing func draft() -> VaultDraft {
    VaultDraft(
      contentKey: contentKey.copy(), vaultKey: vaultKey.copy(), key: key, clear: clear,
      contents: contents.copy())
  }
}

/// The next state of a vault, before it is written.
struct VaultDraft: ~Copyable {
  var contentKey: SecretBytes
  var vaultKey: SecretBytes
  var key: KeyEnvelope
  var clear: ClearMembers
  var contents: VaultContents
  /// The limit of this write.
  var maximumTextByteCount = VaultContents.maximumTextByteCount

  /// A new vault with one password slot.
  static func new(
    _ id: VaultID, credentials: borrowing Credentials, policy: VaultPolicy,
    parameters: VaultParameters
  ) throws(CryptoError) -> VaultDraft {
    let contentKey = SecretBytes.random(byteCount: 32, from: parameters.random)
    let vaultKey = SecretBytes.random(byteCount: 32, from: parameters.random)
    let slot = try KeySlot.password(credentials, wrapping: contentKey, parameters: parameters)
    let key = try KeyEnvelope(
      sealing: vaultKey, under: contentKey, slots: [slot], random: parameters.random)
    let clear = ClearMembers(
      vaultID: id.rawValue, isSecured: !credentials.areStandard(), retryLimit: policy.retryLimit,
      keyDigest: [])
    let contents = VaultContents(
      passwordSetAt: parameters.now().wholeSeconds, policy: policy, random: parameters.random)
    return VaultDraft(
      contentKey: contentKey, vaultKey: vaultKey, key: key, clear: clear, contents: contents)
  }

  /// The bytes of the file whose contents have this text.
  mutating func seal(
    _ text: borrowing SecretBytes, random: RandomSource
  ) throws(CryptoError) -> [UInt8] {
    let keyText = key.text
    clear.keyDigest = try SHA256.digest(unsafe Array(keyText.utf8).span.bytes)
    let contents = try ContentsEnvelope(
      sealing: text, under: vaultKey, clear: clear, random: random)
    return try VaultFile.bytes(keyText: keyText, contents: contents)
  }
}
