public import VaultCrypto

/// Seals and opens pages in memory repeatedly, for the benchmarks.
///
/// A new run of nonces begins every 100 pages, as in a transaction of that many pages.
@_spi(Testing)
public final class SealedPageLoop {
  private static let pagesPerRun = 100

  private let cipher: PageCipher
  private let page = Scratch(byteCount: PageLayout.byteCount)
  private let sealed = Scratch(byteCount: PageLayout.byteCount * pagesPerRun)
  private var nonces = NonceSequence()

  /// Draws a key, and seals a first run of pages to open.
  public init() throws(CryptoError) {
    let key = SecretBytes.random(byteCount: 32)
    cipher = try PageCipher(
      .page, key: key, header: SealedHeader(fileID: Array(repeating: 1, count: 8), key: key))
    _ = try seal(count: Self.pagesPerRun)
  }

  /// Seals `count` pages; returns false if one failed.
  public func seal(count: Int) throws(CryptoError) -> Bool {
    for index in 0..<count {
      let slot = index % Self.pagesPerRun
      if slot == 0 { nonces.end() }
      guard
        try unsafe cipher.seal(
          page.pointer, number: UInt32(slot + 2),
          into: sealed.pointer + slot * PageLayout.byteCount, nonces: &nonces)
      else { return false }
    }
    return true
  }

  /// Opens `count` of the pages sealed last; returns false if one failed.
  public func open(count: Int) throws(CryptoError) -> Bool {
    for index in 0..<count {
      let slot = index % Self.pagesPerRun
      guard
        try unsafe cipher.open(
          sealed.pointer + slot * PageLayout.byteCount, number: UInt32(slot + 2),
          into: page.pointer)
      else { return false }
    }
    return true
  }
}
