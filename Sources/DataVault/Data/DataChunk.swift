internal import VaultCrypto

/// Seals and opens the chunks of one stream, in their order.
struct DataChunk: ~Copyable, Sendable {
  static let byteCount = 65536
  static let tagByteCount = AES256GCM.tagByteCount
  static let sealedByteCount = byteCount + tagByteCount

  private let key: SecretBytes
  private var index: UInt32 = 0

  init(key: consuming SecretBytes) {
    self.key = key
  }

  /// Seals the next chunk.
  mutating func seal(_ plaintext: RawSpan, isLast: Bool) throws(VaultError) -> [UInt8] {
    do throws(CryptoError) {
      let box = try unsafe AES256GCM.seal(
        plaintext, key: key, nonce: nonce(isLast: isLast), authenticating: [UInt8]().span.bytes)
      try advance()
      return box.ciphertext + box.tag
    } catch {
      throw .crypto(error)
    }
  }

  /// Opens the next chunk.
  ///
  /// - Throws: `truncated` where the last one opens only as one in the middle; `damaged`.
  mutating func open(_ sealed: ArraySlice<UInt8>, isLast: Bool) throws(VaultError) -> SecretBytes {
    guard sealed.count >= Self.tagByteCount else { throw .truncatedData }
    let box = AES256GCM.SealedBox(
      ciphertext: Array(sealed.dropLast(Self.tagByteCount)),
      tag: Array(sealed.suffix(Self.tagByteCount)))
    // A writer ends with a whole chunk rather than with an empty one behind it: one form only.
    guard !box.ciphertext.isEmpty || index == 0 else { throw .damagedData }
    do throws(CryptoError) {
      let plaintext = try open(box, isLast: isLast)
      try advance()
      return plaintext
    } catch {
      guard error.code == .authenticationFailed else { throw .crypto(error) }
      if isLast, (try? open(box, isLast: false)) != nil { throw .truncatedData }
      throw .damagedData
    }
  }

  private func open(
    _ box: AES256GCM.SealedBox, isLast: Bool
  ) throws(CryptoError) -> SecretBytes {
    try unsafe AES256GCM.open(
      box, key: key, nonce: nonce(isLast: isLast), authenticating: [UInt8]().span.bytes)
  }

  /// The number of the chunk in 11 bytes, then whether it is the last.
  private func nonce(isLast: Bool) -> [UInt8] {
    var nonce = [UInt8](repeating: 0, count: AES256GCM.nonceByteCount)
    for place in 0..<4 { nonce[10 - place] = UInt8(truncatingIfNeeded: index >> (8 * place)) }
    nonce[11] = isLast ? 1 : 0
    return nonce
  }

  private mutating func advance() throws(CryptoError) {
    let (next, isTooFar) = index.addingReportingOverflow(1)
    guard !isTooFar else { throw CryptoError(.invalidArgument, in: "sealed data's length") }
    index = next
  }
}

extension VaultError {
  fileprivate static var damagedData: VaultError {
    VaultError(.damaged, "the sealed data is damaged, or was sealed with another context")
  }
}
