import TestSupport

/// The contents of a file without its name: the durable bytes, and the changes since then.
struct VolatileFile: Sendable {
  enum Change: Sendable {
    case write(offset: Int, bytes: [UInt8])
    case truncate(Int)
  }

  /// How a power cut selects among the changes that were not synchronized.
  private enum Mode: CaseIterable {
    /// Each sector has the changes up to a different moment.
    case sectors
    /// Each page of 4096 bytes, as the system caches them, has the changes up to a different
    /// moment.
    case pages
    /// All changes up to one moment arrive in order, and the last write is torn.
    case inOrder
    /// Nearly all sectors have all changes.
    case mostlyKept
    /// Nearly all sectors have no change.
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

  /// The contents after the cut.
  ///
  /// Each sector is in one of its states since the last sync. A truncated or extended file has one
  /// of its lengths since the last sync.
  ///
  /// - Parameter mayShowStaleBytes: whether a file whose length arrived before its contents can
  ///   show earlier bytes of the disk in place of zeros.
  func contents(_ random: inout SeededRandom, mayShowStaleBytes: Bool) -> [UInt8] {
    if pending.isEmpty { return durable }
    let mode = Mode.allCases[random.next(Mode.allCases.count)]
    // If a truncation is lost, the later changes of the same file are lost, too.
    let count = random.oneIn(2) ? pending.count : random.next(pending.count + 1)
    let seed = random.next()
    var bytes = durable
    for (index, change) in pending.prefix(count).enumerated() {
      guard case .write(let offset, let source) = change else {
        Self.apply(change, to: &bytes)
        continue
      }
      switch mode {
      case .inOrder where index == count - 1:
        Self.tear(source, at: offset, into: &bytes, &random)
      case .inOrder:
        Self.apply(change, to: &bytes)
      default:
        let block = mode == .pages ? 4096 : Self.sectorByteCount
        Self.write(source, at: offset, block: block, into: &bytes) { number in
          index < Self.moment(of: number, mode, seed, count)
        }
      }
    }
    if bytes.count < contents.count, random.oneIn(4) {
      let filling = mayShowStaleBytes && random.oneIn(2) ? UInt8(random.next(256)) : 0
      bytes += [UInt8](repeating: filling, count: contents.count - bytes.count)
    }
    return bytes
  }

  /// The number of changes in a block: a prefix of them, different for each block.
  private static func moment(of block: Int, _ mode: Mode, _ seed: UInt64, _ count: Int) -> Int {
    let choice = SeededRandom.mix(seed ^ UInt64(block) &* 0x9E37_79B9_7F4A_7C15)
    let usual = Int((choice >> 8) % UInt64(count + 1))
    switch mode {
    case .mostlyKept: return choice & 7 == 0 ? usual : count
    case .mostlyLost: return choice & 7 == 0 ? usual : 0
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

  /// Writes only the first, or only the last, sectors of a write.
  private static func tear(
    _ source: [UInt8], at offset: Int, into bytes: inout [UInt8], _ random: inout SeededRandom
  ) {
    let first = offset / sectorByteCount
    let last = (offset + source.count - 1) / sectorByteCount
    let edge = first + random.next(last - first + 2)
    let keepsBeginning = random.oneIn(2)
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
