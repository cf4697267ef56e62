internal import VaultCrypto

/// The nonces of one connection: `docs/sealed-database-format.md`, "Nonces".
///
/// A run begins with 24 bytes from the kernel and counts the last 12 up, so that the derived key of
/// the first 12 stays ready. What ends a run: taking a write lock, a sync, a fork, its own length.
struct NonceSequence {
  /// The most nonces in one run, and so the most pages under one derived key: 4 GiB.
  static let longestRun = 1 << 20

  private let random: RandomSource
  private var prefix: (UInt64, UInt32) = (0, 0)
  private var counter: (low: UInt64, high: UInt32) = (0, 0)
  private var remainingCount = 0
  private var processID: Int32 = 0

  init(random: RandomSource = .system) {
    self.random = random
  }

  /// Ends the run: the next nonce is drawn anew.
  mutating func end() {
    remainingCount = 0
  }

  /// Writes the next nonce: 24 bytes.
  mutating func writeNext(to target: UnsafeMutableRawPointer) {
    if remainingCount > 0 && processID == ProcessMark.current {
      let (low, carry) = counter.low.addingReportingOverflow(1)
      counter = (low, counter.high &+ (carry ? 1 : 0))  // never into the first 12 bytes
    } else {
      unsafe random.fill(UnsafeMutableRawBufferPointer(start: target, count: 24))
      unsafe prefix = (
        target.loadUnaligned(as: UInt64.self),
        target.loadUnaligned(fromByteOffset: 8, as: UInt32.self)
      )
      unsafe counter = (
        target.loadUnaligned(fromByteOffset: 12, as: UInt64.self),
        target.loadUnaligned(fromByteOffset: 20, as: UInt32.self)
      )
      remainingCount = Self.longestRun
      processID = ProcessMark.current
    }
    remainingCount -= 1
    unsafe target.storeBytes(of: prefix.0, as: UInt64.self)
    unsafe target.storeBytes(of: prefix.1, toByteOffset: 8, as: UInt32.self)
    unsafe target.storeBytes(of: counter.low, toByteOffset: 12, as: UInt64.self)
    unsafe target.storeBytes(of: counter.high, toByteOffset: 20, as: UInt32.self)
  }
}
