/// Which blocks of a temporary file were ever written: a bit each, 32 KiB for each GiB.
///
/// A block that was not is a hole and reads as zeros, as in any file. Without this a block that
/// someone overwrote with zeros could not be told from one.
struct WrittenBlocks {
  private var words: [UInt64] = []

  func contains(_ block: Int64) -> Bool {
    let (word, bit) = Int(block).quotientAndRemainder(dividingBy: 64)
    return word < words.count && words[word] & 1 << UInt64(bit) != 0
  }

  mutating func insert(_ block: Int64) {
    let (word, bit) = Int(block).quotientAndRemainder(dividingBy: 64)
    if word >= words.count {
      words.append(contentsOf: repeatElement(0, count: word + 1 - words.count))
    }
    words[word] |= 1 << UInt64(bit)
  }

  /// Forgets the blocks from `block` on.
  mutating func removeAll(from block: Int64) {
    let (word, bit) = Int(block).quotientAndRemainder(dividingBy: 64)
    guard word < words.count else { return }
    words.removeSubrange((word + 1)...)
    words[word] &= (1 << UInt64(bit)) - 1
  }
}
