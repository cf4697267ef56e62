@_spi(Testing) import SealedVFS
import VaultCrypto

/// The cost of sealing and opening one page, compared with `openssl speed` for 4096 bytes.
///
/// The comparison favours openssl: `openssl speed` encrypts one long stream, without a nonce,
/// associated data or a tag for each 4096 bytes.
enum PageCost {
  private static let pageCount = 200_000

  static func measure(decrypting: Bool, rounds: Int) async throws -> Comparison {
    let pages = try SealedPageLoop()
    return try await compare(
      "\(decrypting ? "open" : "seal") a page", rounds: rounds
    ) {
      guard try decrypting ? pages.open(count: pageCount) : pages.seal(count: pageCount) else {
        throw BenchmarkError("a page was not \(decrypting ? "opened" : "sealed")")
      }
    }
  }

  /// Opens pages whose derived keys all differ and are never cached.
  ///
  /// This is the worst case of a scan: different transactions have written all neighbouring pages.
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
