import VaultCrypto

/// Sealing and opening one page as the sealed file does, beside what `openssl speed` gives for 4096
/// bytes.
///
/// A page is 4056 bytes of text, with 24 of nonce and 16 of tag in its reserved bytes; the
/// associated data name its role, file and number. The comparison is hard on us: `openssl speed`
/// streams, without a nonce, associated data or a tag for each 4096 bytes.
enum PageCost {
  private static let pageCount = 200_000
  private static let textByteCount = 4056

  /// What is done with a page.
  enum Work: String, CaseIterable {
    case seal = "seal a page"
    case open = "open a page"
    /// Each page under another derived key than the one before, and never one that is ready: a
    /// scan of a file whose neighbouring pages were written by different transactions.
    case openUnderChangingKeys = "open pages of many transactions"

    /// The most that it may cost, as a multiple of openssl's 4096 bytes.
    var goal: Double { 1.3 }
  }

  static func measure(_ work: Work, rounds: Int) async throws -> Comparison {
    let cipher = try XAES256GCM(key: .random(byteCount: XAES256GCM.keyByteCount))
    var page = [UInt8](repeating: 0x5A, count: textByteCount)
    var nonce = RandomSource.system.bytes(count: XAES256GCM.nonceByteCount)
    var tag = [UInt8](repeating: 0, count: XAES256GCM.tagByteCount)
    let aad = [UInt8](repeating: 1, count: 13)
    let prefixes = work == .openUnderChangingKeys ? 64 : 1
    var comparison = Comparison(
      "\(work.rawValue) / openssl speed AES-256-GCM", goal: work.goal,
      decidedByProcessorTime: true)
    for _ in 0..<rounds {
      // One sealed page a prefix; what is opened is copied from here, as from the system's cache.
      var sealed: [(text: [UInt8], nonce: [UInt8], tag: [UInt8])] = []
      for number in 0..<prefixes {
        nonce[0] = UInt8(number)
        page = [UInt8](repeating: 0x5A, count: textByteCount)
        try seal(&page, with: cipher, nonce: nonce, aad: aad, tag: &tag)
        sealed.append((page, nonce, tag))
      }
      let all = try await Cost.of {
        for number in 0..<pageCount {
          if work == .seal {
            increment(&nonce)
            try seal(&page, with: cipher, nonce: nonce, aad: aad, tag: &tag)
          } else {
            let source = sealed[number % prefixes]
            page.withUnsafeMutableBytes { page in
              source.text.withUnsafeBytes { page.copyMemory(from: $0) }
            }
            try open(&page, with: cipher, nonce: source.nonce, aad: aad, tag: source.tag)
          }
        }
      }
      let ours = Cost(
        wallSeconds: all.wallSeconds / Double(pageCount),
        processorSeconds: all.processorSeconds / Double(pageCount))
      comparison.add(ours: ours, other: try OpenSSLSpeed.costOfPage(decrypting: work != .seal))
    }
    return comparison
  }

  private static func seal(
    _ page: inout [UInt8], with cipher: XAES256GCM, nonce: [UInt8], aad: [UInt8],
    tag: inout [UInt8]
  ) throws {
    var pageSpan = page.mutableSpan
    var pageBytes = pageSpan.mutableBytes
    var tagSpan = tag.mutableSpan
    var tagBytes = tagSpan.mutableBytes
    try cipher.seal(
      &pageBytes, nonce: nonce.span.bytes, authenticating: aad.span.bytes, tag: &tagBytes)
  }

  private static func open(
    _ page: inout [UInt8], with cipher: XAES256GCM, nonce: [UInt8], aad: [UInt8], tag: [UInt8]
  ) throws {
    var pageSpan = page.mutableSpan
    var pageBytes = pageSpan.mutableBytes
    try cipher.open(
      &pageBytes, nonce: nonce.span.bytes, authenticating: aad.span.bytes, tag: tag.span.bytes)
  }

  /// Counts the last 12 bytes up, as a writer does page by page.
  private static func increment(_ nonce: inout [UInt8]) {
    for index in (12..<24).reversed() {
      nonce[index] &+= 1
      if nonce[index] != 0 { return }
    }
  }
}
