internal import Glibc
internal import NIOCore
internal import Synchronization

/// The memory that clients can make a server hold, bounded for all connections together.
///
/// A connection that holds more than its share ends. If all together hold more than the limit, the largest ends.
final class MemoryLedger: Sendable {
  /// Asks a connection to give back its memory and to end, with its protocol's error if the client can read it.
  struct End: Sendable {}

  fileprivate struct Account {
    let channel: any Channel
    var byteCount = 0
  }

  fileprivate struct State {
    var accounts: [ObjectIdentifier: Account] = [:]
    var byteCount = 0
  }

  /// The most bytes of all connections.
  let limitByteCount: Int
  private let state = Mutex(State())
  private let didEnd: @Sendable () -> Void

  /// - Parameter didEnd: called for each connection that ends for its memory.
  init(
    limitByteCount: Int = MemoryLedger.defaultLimitByteCount,
    didEnd: @escaping @Sendable () -> Void = {}
  ) {
    self.limitByteCount = limitByteCount
    self.didEnd = didEnd
  }

  /// A quarter of the machine's memory.
  static var defaultLimitByteCount: Int {
    sysconf(Int32(_SC_PHYS_PAGES)) * sysconf(Int32(_SC_PAGESIZE)) / 4
  }

  /// The most bytes of one connection.
  var shareByteCount: Int { limitByteCount / 8 }

  /// What all connections hold.
  var byteCount: Int { state.withLock { $0.byteCount } }

  /// Whether the next connections can end for their memory.
  var isNearlyFull: Bool { byteCount > limitByteCount / 8 * 7 }

  /// Opens the account of a connection; everything is given back when the connection closes.
  func open(_ channel: any Channel) -> MemoryAccount {
    let id = ObjectIdentifier(channel)
    state.withLock { $0.accounts[id] = Account(channel: channel) }
    channel.closeFuture.whenComplete { [self] _ in state.withLock { _ = $0.close(id) } }
    return MemoryAccount(self, id)
  }

  fileprivate func note(_ byteCount: Int, of id: ObjectIdentifier) {
    let ending = state.withLock { state -> (any Channel)? in
      guard let old = state.accounts[id]?.byteCount else { return nil }
      state.accounts[id]?.byteCount = byteCount
      state.byteCount += byteCount - old
      if byteCount > shareByteCount { return state.close(id) }
      guard state.byteCount > limitByteCount,
        let largest = state.accounts.max(by: { $0.value.byteCount < $1.value.byteCount })
      else { return nil }
      return state.close(largest.key)
    }
    guard let ending else { return }
    didEnd()
    // Not now: it can be in the middle of what has made it grow.
    ending.eventLoop.execute { ending.pipeline.fireUserInboundEventTriggered(End()) }
  }
}

extension MemoryLedger.State {
  /// Removes an account: a connection that ends gives its memory back.
  fileprivate mutating func close(_ id: ObjectIdentifier) -> (any Channel)? {
    guard let account = accounts.removeValue(forKey: id) else { return nil }
    byteCount -= account.byteCount
    return account.channel
  }
}

/// What one connection holds; only for use on its event loop.
final class MemoryAccount {
  /// What a client makes its connection hold.
  enum Kind: Int, CaseIterable {
    /// Bytes that were read, and not taken.
    case input
    /// A request that is read or answered.
    case request
    /// Fragments of a WebSocket message.
    case fragments
    /// What the session of a protocol keeps, as transactions.
    case session
    /// What the client has not read.
    case output
  }

  /// Smaller changes are not noted, so that a usual request takes no lock.
  static let stepByteCount = 4 << 10

  private let ledger: MemoryLedger
  private let id: ObjectIdentifier
  private var byteCounts = [Int](repeating: 0, count: Kind.allCases.count)
  private var notedByteCount = 0

  fileprivate init(_ ledger: MemoryLedger, _ id: ObjectIdentifier) {
    self.ledger = ledger
    self.id = id
  }

  /// Says how many bytes of a kind the connection holds now.
  func hold(_ byteCount: Int, _ kind: Kind) {
    byteCounts[kind.rawValue] = byteCount
    let sum = byteCounts.reduce(0, +)
    let rounded = sum / Self.stepByteCount * Self.stepByteCount
    guard rounded != notedByteCount else { return }
    notedByteCount = rounded
    ledger.note(rounded, of: id)
  }
}
