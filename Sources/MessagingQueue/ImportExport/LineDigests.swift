internal import VaultCrypto

/// A SHA-256 that is updated in place.
///
/// It is a class because `SHA256` is noncopyable and ``ExportPlace`` is not. Copies of a place share
/// one digest, so only one of them can continue.
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

  /// The digest of all bytes so far; the next update begins a new digest.
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

/// A chained digest of lines: each is the hash of the one before and the line, so it can be stored
/// after any line.
struct LineChain {
  private(set) var digest = [UInt8](repeating: 0, count: SHA256.byteCount)

  mutating func add(_ line: [UInt8]) throws(EngineError) {
    let hash = RunningDigest()
    try hash.update(digest)
    try hash.update(line)
    digest = try hash.finalized()
  }
}
