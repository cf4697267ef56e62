internal import VaultCrypto

/// The nonces of one connection: `docs/sealed-database-format.md`, "Nonces".
///
/// The first 12 bytes choose the derived key and stay for many transactions, so that it stays ready,
/// here and for whoever reads the pages. The last 12 are drawn for each *run* and count up in it; what
/// ends a run: taking a write lock, a sync. A fork and the prefix's own length end both.
struct NonceSequence {
  /// The most nonces with one prefix, and so the most pages under one derived key: 4 GiB.
  static let mostPerPrefix = 1 << 20

  private let random: RandomSource
  private var prefix: (UInt64, UInt32) = (0, 0)
  private var counter: (low: UInt64, high: UInt32) = (0, 0)
  private var remainingCount = 0
  private var isRunning = false
  private var processID: Int32 = 0

  init(random: RandomSource = .system) {
    self.random = random
  }

  /// Ends the run: the next nonce counts from another place.
  mutating func end() {
    isRunning = false
  }

  /// Writes the next nonce: 24 bytes.
  mutating func writeNext(to target: UnsafeMutableRawPointer) {
    if remainingCount == 0 || processID != ProcessMark.current {
      unsafe beginPrefix(in: target)
    } else if !isRunning {
      unsafe beginRun(in: target)
    } else {
      let (low, carry) = counter.low.addingReportingOverflow(1)
      counter = (low, counter.high &+ (carry ? 1 : 0))  // never into the first 12 bytes
    }
    remainingCount -= 1
    unsafe target.storeBytes(of: prefix.0, as: UInt64.self)
    unsafe target.storeBytes(of: prefix.1, toByteOffset: 8, as: UInt32.self)
    unsafe target.storeBytes(of: counter.low, toByteOffset: 12, as: UInt64.self)
    unsafe target.storeBytes(of: counter.high, toByteOffset: 20, as: UInt32.self)
  }

  /// Draws the first 12 bytes, and then the rest.
  private mutating func beginPrefix(in target: UnsafeMutableRawPointer) {
    unsafe random.fill(UnsafeMutableRawBufferPointer(start: target, count: 12))
    unsafe prefix = (
      target.loadUnaligned(as: UInt64.self),
      target.loadUnaligned(fromByteOffset: 8, as: UInt32.self)
    )
    remainingCount = Self.mostPerPrefix
    processID = ProcessMark.current
    unsafe beginRun(in: target)
  }

  /// Draws the last 12 bytes.
  private mutating func beginRun(in target: UnsafeMutableRawPointer) {
    unsafe random.fill(UnsafeMutableRawBufferPointer(start: target + 12, count: 12))
    unsafe counter = (
      target.loadUnaligned(fromByteOffset: 12, as: UInt64.self),
      target.loadUnaligned(fromByteOffset: 20, as: UInt32.self)
    )
    isRunning = true
  }
}
