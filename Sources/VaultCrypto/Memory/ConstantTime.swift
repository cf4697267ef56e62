internal import COpenSSL

/// Whether two byte sequences are equal, in time that depends on their length alone.
///
/// The one comparison for secrets and tags. Sequences of different length are unequal at once.
public func isEqualInConstantTime(_ a: RawSpan, _ b: RawSpan) -> Bool {
  guard a.byteCount == b.byteCount else { return false }
  if a.byteCount == 0 { return true }
  return unsafe a.withUnsafeBytes { left in
    unsafe b.withUnsafeBytes { right in
      unsafe CRYPTO_memcmp(left.baseAddress, right.baseAddress, left.count) == 0
    }
  }
}
