internal import Glibc
internal import Synchronization
internal import VaultCrypto

/// The nonces of one connection: `docs/reference/sealed-database-format.md`, "Nonces".
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
    if remainingCount == 0 || processID != ForkDetector.current {
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

/// Tells a process from its parent without a system call: memory that the kernel empties in a
/// child (`MADV_WIPEONFORK`, madvise(2)) holds the id of the process that it is true for.
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

  /// A page of its own, for ever; nil where the kernel cannot empty it.
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
