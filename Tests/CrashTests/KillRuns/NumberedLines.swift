import TestSupport

/// The lines that one run publishes: each has its number, and a text that no sealed file must show.
struct NumberedLines: Sendable {
  /// In every line once every 32 bytes, so that any fragment of a page would show it.
  static let canary = Array("plaintext-of-a-numbered-message-".utf8)

  private static let text = Array((0..<2048).map { _ in canary }.joined())

  let run: Int

  /// Line `number`, without its newline: mostly short, sometimes larger than several pages.
  func line(_ number: Int) -> [UInt8] {
    var random = SeededRandom(seed: UInt64(run) << 32 | UInt64(number))
    let byteCount = random.oneIn(50) ? random.next(40_000) : random.next(1_500)
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
