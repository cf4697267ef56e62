/// The lines that one run publishes: each has its number, and a text that no sealed file must show.
struct NumberedLines: Sendable {
  /// In every line once every 32 bytes, so that any fragment of a page would show it.
  static let canary = Array("plaintext-of-a-numbered-message-".utf8)

  private static let text = Array((0..<2048).map { _ in canary }.joined())

  let run: Int

  /// Line `number`, without its newline: mostly short, sometimes larger than several pages.
  func line(_ number: Int) -> [UInt8] {
    var random = SplitMix(seed: UInt64(run) << 32 | UInt64(number))
    let byteCount =
      random.next(below: 50) == 0 ? random.next(below: 40_000) : random.next(below: 1_500)
    return Array("\(run) \(number) ".utf8) + Self.canary + Self.text.prefix(byteCount)
  }

  /// The number of leading lines of `output` that are the first lines of the run, and the number of
  /// all lines.
  func count(in output: [UInt8]) -> (correct: Int, found: Int) {
    let found = output.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      .dropLast()
    var correct = 0
    for line in found {
      guard Array(line) == self.line(correct) else { break }
      correct += 1
    }
    return (correct, found.count)
  }
}

/// A small generator whose seed can be printed: SplitMix64.
struct SplitMix: RandomNumberGenerator, Sendable {
  private var state: UInt64

  init(seed: UInt64) {
    state = seed
  }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var word = state
    word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
    return word ^ (word >> 31)
  }

  mutating func next(below bound: Int) -> Int {
    Int(next() % UInt64(bound))
  }
}
