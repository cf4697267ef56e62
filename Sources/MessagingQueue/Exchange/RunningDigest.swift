internal import VaultCrypto

/// A SHA-256 that goes on while it is copied about: a value for those who need one in a struct.
final class RunningDigest {
  private var hash: SHA256?

  init() {}

  func update(_ bytes: [UInt8]) throws(EngineError) {
    do throws(CryptoError) {
      var hash = try take()
      try unsafe hash.update(bytes.span.bytes)
      self.hash = consume hash
    } catch {
      throw EngineError(.inputOutput, "the digest cannot be computed", underlying: error)
    }
  }

  /// The digest of everything; it begins anew afterwards.
  func finalized() throws(EngineError) -> [UInt8] {
    do throws(CryptoError) {
      return try take().finalize()
    } catch {
      throw EngineError(.inputOutput, "the digest cannot be computed", underlying: error)
    }
  }

  private func take() throws(CryptoError) -> SHA256 {
    if let hash = hash.take() { return hash }
    return try SHA256()
  }
}

extension [UInt8] {
  /// Two lowercase digits a byte.
  var hexadecimal: String {
    let digits = Array<UInt8>("0123456789abcdef".utf8)
    return String(
      decoding: flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0xF)]] }, as: UTF8.self)
  }
}
