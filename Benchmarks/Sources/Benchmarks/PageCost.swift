@_spi(Testing) import SealedVFS

/// Sealing and opening one page, beside what `openssl speed` gives for as many bytes.
enum PageCost {
  private static let pageCount = 200_000

  static func measure(decrypting: Bool, rounds: Int) async throws -> Comparison {
    let pages = try SealedPageLoop()
    var comparison = Comparison(
      "\(decrypting ? "open" : "seal") a page / openssl speed AES-256-GCM", goal: 1.3,
      decidedByProcessorTime: true)
    for _ in 0..<rounds {
      let all = try await Cost.of {
        guard decrypting ? pages.open(count: pageCount) : pages.seal(count: pageCount) else {
          throw BenchmarkError("a page was not \(decrypting ? "opened" : "sealed")")
        }
      }
      let ours = Cost(
        wallSeconds: all.wallSeconds / Double(pageCount),
        processorSeconds: all.processorSeconds / Double(pageCount))
      comparison.add(ours: ours, other: try OpenSSLSpeed.costOfPage(decrypting: decrypting))
    }
    return comparison
  }
}
