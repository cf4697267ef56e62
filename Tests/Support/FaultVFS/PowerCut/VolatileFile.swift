/// A file apart from its name: what of it is durable, and what was written since.
struct VolatileFile: Sendable {
  enum Change: Sendable {
    case write(offset: Int, bytes: [UInt8])
    case truncate(Int)
  }

  /// How a power cut chooses among the changes that were not synchronized.
  private enum Mode: CaseIterable {
    /// Each sector holds what was written to it up to some moment of its own.
    case sectors
    /// The same for the 4096 bytes that a system keeps together.
    case pages
    /// Up to one moment in order, the last write torn.
    case inOrder
    /// Nearly every sector is up to date.
    case mostlyKept
    /// Nearly none is.
    case mostlyLost
  }

  private(set) var contents: [UInt8] = []
  private(set) var durable: [UInt8] = []
  private var pending: [Change] = []

  var isSettled: Bool { pending.isEmpty }

  static let sectorByteCount = 512

  init(durable: [UInt8] = []) {
    contents = durable
    self.durable = durable
  }

  mutating func apply(_ change: Change) {
    Self.apply(change, to: &contents)
    pending.append(change)
  }

  mutating func synchronize() {
    durable = contents
    pending = []
  }

  /// What is there after the cut: each sector in one of the states it went through, a truncated or
  /// extended file as short or long as it ever was since the last sync.
  ///
  /// - Parameter mayShowStaleBytes: whether a file whose length arrived before its contents shows
  ///   what lay there before, in place of zeros.
  func contents(_ dice: inout SeededRandom, mayShowStaleBytes: Bool) -> [UInt8] {
    if pending.isEmpty { return durable }
    let mode = Mode.allCases[dice.next(Mode.allCases.count)]
    // What came after a lost truncation of the same file is lost too.
    let count = dice.oneIn(2) ? pending.count : dice.next(pending.count + 1)
    let seed = dice.next()
    var bytes = durable
    for (index, change) in pending.prefix(count).enumerated() {
      guard case .write(let offset, let source) = change else {
        Self.apply(change, to: &bytes)
        continue
      }
      switch mode {
      case .inOrder where index == count - 1:
        Self.tear(source, at: offset, into: &bytes, &dice)
      case .inOrder:
        Self.apply(change, to: &bytes)
      default:
        let block = mode == .pages ? 4096 : Self.sectorByteCount
        Self.write(source, at: offset, block: block, into: &bytes) { number in
          index < Self.moment(of: number, mode, seed, count)
        }
      }
    }
    if bytes.count < contents.count, dice.oneIn(4) {
      let filling = mayShowStaleBytes && dice.oneIn(2) ? UInt8(dice.next(256)) : 0
      bytes += [UInt8](repeating: filling, count: contents.count - bytes.count)
    }
    return bytes
  }

  /// How many of the changes are in a block: those of a beginning of time, different for each.
  private static func moment(of block: Int, _ mode: Mode, _ seed: UInt64, _ count: Int) -> Int {
    let roll = SeededRandom.mix(seed ^ UInt64(block) &* 0x9E37_79B9_7F4A_7C15)
    let usual = Int((roll >> 8) % UInt64(count + 1))
    switch mode {
    case .mostlyKept: return roll & 7 == 0 ? usual : count
    case .mostlyLost: return roll & 7 == 0 ? usual : 0
    default: return usual
    }
  }

  private static func write(
    _ source: [UInt8], at offset: Int, block: Int, into bytes: inout [UInt8],
    where isKept: (Int) -> Bool
  ) {
    source.withUnsafeBytes { source in
      var start = offset
      while start < offset + source.count {
        let number = start / block
        let end = min((number + 1) * block, offset + source.count)
        if isKept(number) {
          bytes.overwrite(
            at: start, with: UnsafeRawBufferPointer(rebasing: source[start - offset..<end - offset])
          )
        }
        start = end
      }
    }
  }

  /// Only the first, or only the last, sectors of a write arrive.
  private static func tear(
    _ source: [UInt8], at offset: Int, into bytes: inout [UInt8], _ dice: inout SeededRandom
  ) {
    let first = offset / sectorByteCount
    let last = (offset + source.count - 1) / sectorByteCount
    let edge = first + dice.next(last - first + 2)
    let keepsBeginning = dice.oneIn(2)
    write(source, at: offset, block: sectorByteCount, into: &bytes) { number in
      keepsBeginning ? number < edge : number >= edge
    }
  }

  private static func apply(_ change: Change, to bytes: inout [UInt8]) {
    switch change {
    case .write(let offset, let source):
      source.withUnsafeBytes { bytes.overwrite(at: offset, with: $0) }
    case .truncate(let byteCount): bytes.resize(to: byteCount)
    }
  }
}
