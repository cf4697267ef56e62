@_spi(Testing) import SealedVFS
import VaultCrypto

/// Sealing and opening one page, beside what `openssl speed` gives for 4096 bytes.
///
/// The comparison is hard on us: `openssl speed` encrypts one long stream, without a nonce, associated
/// data or a tag for each 4096 bytes.
enum PageCost {
  private static let pageCount = 200_000

  static func measure(decrypting: Bool, rounds: Int) async throws -> Comparison {
    let pages = try SealedPageLoop()
    return try await compare(
      "\(decrypting ? "open" : "seal") a page", rounds: rounds
    ) {
      guard decrypting ? pages.open(count: pageCount) : pages.seal(count: pageCount) else {
        throw BenchmarkError("a page was not \(decrypting ? "opened" : "sealed")")
      }
    }
  }

  /// Each page under another derived key than the one before, and never one that is ready: the
  /// worst that a scan can meet, when neighbouring pages were all written by different transactions.
  static func measureOpeningUnderChangingKeys(rounds: Int) async throws -> Comparison {
    let cipher = try XAES256GCM(key: .random(byteCount: XAES256GCM.keyByteCount))
    let aad = [UInt8](repeating: 1, count: 13)
    let sealed = try (0..<64 as Range<UInt8>).map { number in
      let nonce = [UInt8](repeating: number, count: XAES256GCM.nonceByteCount)
      var page = [UInt8](repeating: 0x5A, count: 4056)
      var tag = [UInt8](repeating: 0, count: XAES256GCM.tagByteCount)
      var pageSpan = page.mutableSpan
      var pageBytes = pageSpan.mutableBytes
      var tagSpan = tag.mutableSpan
      var tagBytes = tagSpan.mutableBytes
      try cipher.seal(
        &pageBytes, nonce: nonce.span.bytes, authenticating: aad.span.bytes, tag: &tagBytes)
      return (text: page, nonce: nonce, tag: tag)
    }
    var page = sealed[0].text
    return try await compare(
      "open a page of another transaction", rounds: rounds
    ) {
      for number in 0..<pageCount {
        let source = sealed[number % sealed.count]
        page.withUnsafeMutableBytes { page in
          source.text.withUnsafeBytes { page.copyMemory(from: $0) }
        }
        var pageSpan = page.mutableSpan
        var pageBytes = pageSpan.mutableBytes
        try cipher.open(
          &pageBytes, nonce: source.nonce.span.bytes, authenticating: aad.span.bytes,
          tag: source.tag.span.bytes)
      }
    }
  }

  private static func compare(
    _ name: String, rounds: Int, _ body: () throws -> Void
  ) async throws -> Comparison {
    var comparison = Comparison(
      "\(name) / openssl speed AES-256-GCM", goal: .atMost(1.3), decidedByProcessorTime: true)
    for _ in 0..<rounds {
      let all = try Cost.of(body)
      let ours = Cost(
        wallSeconds: all.wallSeconds / Double(pageCount),
        processorSeconds: all.processorSeconds / Double(pageCount))
      comparison.add(ours: ours, other: try OpenSSLSpeed.costOfPage())
    }
    return comparison
  }
}
