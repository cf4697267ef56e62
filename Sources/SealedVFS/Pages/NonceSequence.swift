internal import Glibc
internal import Synchronization
internal import VaultCrypto

/// The nonces of one connection: `docs/reference/sealed-database-format.md`, "Nonces".
///
/// The first 12 bytes choose the derived key. They stay the same for many transactions, so that
/// writers and readers of the pages can keep the derived key. The last 12 bytes are drawn for each
/// *run* and count up in it. Taking a write lock, or a sync, ends a run. A fork, or the last nonce
/// of a prefix, ends both.
struct NonceSequence {
  /// The most nonces with one prefix, and so the most pages under one derived key: 4 GiB.
  static let maximumPerPrefix = 1 << 20

  private let random: RandomSource
  private var prefix: (UInt64, UInt32) = (0, 0)
  private var counter: (low: UInt64, high: UInt32) = (0, 0)
  private var remainingCount = 0
  private var isRunning = false
  private var processID: Int32 = 0

  init(random: RandomSource = .system) {
    self.random = random
  }

  /// Ends the run: the next nonce starts from a new random value.
  mutating func end() {
    isRunning = false
  }

  /// Writes the next nonce: 24 bytes.
  mutating func writeNext(to target: UnsafeMutableRawPointer) {
    if remainingCount == 0 || processID != ForkDetector.current {
      unsafe beginPrefix(in: target)
    } else if !isRunning {
      unsafe beginRun(in: target)
    } else {
      let (low, carry) = counter.low.addingReportingOverflow(1)
      counter = (low, counter.high &+ (carry ? 1 : 0))  // never carries into the first 12 bytes
    }
    remainingCount -= 1
    unsafe target.storeBytes(of: prefix.0, as: UInt64.self)
    unsafe target.storeBytes(of: prefix.1, toByteOffset: 8, as: UInt32.self)
    unsafe target.storeBytes(of: counter.low, toByteOffset: 12, as: UInt64.self)
    unsafe target.storeBytes(of: counter.high, toByteOffset: 20, as: UInt32.self)
  }

  /// Draws all 24 bytes.
  private mutating func beginPrefix(in target: UnsafeMutableRawPointer) {
    unsafe random.fill(UnsafeMutableRawBufferPointer(start: target, count: 12))
    unsafe prefix = (
      target.loadUnaligned(as: UInt64.self),
      target.loadUnaligned(fromByteOffset: 8, as: UInt32.self)
    )
    remainingCount = Self.maximumPerPrefix
    processID = ForkDetector.current
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

/// Distinguishes a process from its parent without a system call.
///
/// The process id is stored in memory that the kernel zeroes in a child (`MADV_WIPEONFORK`,
/// madvise(2)).
@safe enum ForkDetector {
  /// The id of this process.
  static var current: Int32 {
    guard let memory = unsafe memory else { return getpid() }
    let mark = unsafe memory.pointee.load(ordering: .relaxed)
    if mark != 0 { return mark }
    let id = getpid()
    unsafe memory.pointee.store(id, ordering: .relaxed)
    return id
  }

  /// A page that is never unmapped; nil if the kernel cannot wipe it on fork.
  // nonisolated(unsafe): the pointer is constant, what it points to is atomic.
  nonisolated(unsafe) private static let memory: UnsafeMutablePointer<Atomic<Int32>>? = {
    let byteCount = Int(getpagesize())
    let wipeOnFork: Int32 = 18
    guard
      let page = unsafe mmap(
        nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
      unsafe page != MAP_FAILED
    else { return nil }
    guard unsafe madvise(page, byteCount, wipeOnFork) == 0 else {
      unsafe munmap(page, byteCount)
      return nil
    }
    let memory = unsafe page.bindMemory(to: Atomic<Int32>.self, capacity: 1)
    unsafe memory.initialize(to: Atomic(0))
    return unsafe memory
  }()
}
