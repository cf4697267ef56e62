internal import DataVault
internal import Dispatch
internal import Synchronization

extension StoreTrial {
  /// The wait for a lock that must stay held, and the longest wait for a lock that must become
  /// free.
  private static let shortWait = DispatchTimeInterval.milliseconds(200)
  private static let longWait = DispatchTimeInterval.seconds(20)

  func lockExcludes() throws {
    let (store, other) = (try store(), try store())
    try store.prepare()
    try requireExclusion("lock") {
      try store.lock(id)
    } second: {
      try other.lock(id)
    }
  }

  /// Requires that a lock excludes others until it is released, or until its last reference is
  /// gone.
  func requireExclusion(
    _ name: String, _ first: () throws -> VaultStoreLock,
    second: @escaping @Sendable () throws -> VaultStoreLock
  ) throws {
    let lock = try first()
    let entered = enter(second)
    try require(
      entered.wait(timeout: .now() + Self.shortWait) == .timedOut,
      "a second object took the \(name) while the first held it")
    lock.release()
    try require(
      entered.wait(timeout: .now() + Self.longWait) == .success,
      "no other object could take the \(name) after it was released")
    lock.release()

    // Without a release, the end of the last reference releases the lock.
    _ = try first()
    try require(
      isEntered(second),
      "no other object could take the \(name) after the last reference to it was gone")
  }

  func locksAreApart() throws {
    let (store, other) = (try store(), try store())
    try store.prepare()
    let lock = try store.lock(id)
    defer { lock.release() }
    let otherID = try VaultID("other")
    try require(
      isEntered { try other.lock(otherID) },
      "the lock of one vault prevented taking the lock of another vault")
  }

  /// Whether another thread can take a lock.
  func isEntered(_ take: @escaping @Sendable () throws -> VaultStoreLock) -> Bool {
    enter(take).wait(timeout: .now() + Self.longWait) == .success
  }

  /// Takes a lock on another thread, signals, and releases the lock.
  ///
  /// It returns just before that thread takes the lock: on a busy machine the thread can start
  /// late.
  private func enter(
    _ take: @escaping @Sendable () throws -> VaultStoreLock
  ) -> DispatchSemaphore {
    let (begun, entered) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    DispatchQueue(label: "datavault.conformance.lock").async {
      begun.signal()
      guard let lock = try? take() else { return }
      entered.signal()
      lock.release()
    }
    begun.wait()
    return entered
  }

  func concurrentWriters() throws {
    let (writerCount, roundCount) = (4, 5)
    try write(Self.state(0), id)
    let outcome = Mutex<String?>(nil)
    let stores = try (0..<writerCount).map { _ in try store() }
    DispatchQueue.concurrentPerform(iterations: writerCount) { index in
      do {
        for _ in 0..<roundCount {
          // One read without the lock: it must see a complete vault, even during a write.
          _ = try count(in: stores[index].read(id))
          try holding(id, stores[index]) {
            let number = try count(in: stores[index].read(id))
            try stores[index].write(Self.state(number + 1), for: id)
          }
        }
      } catch {
        outcome.withLock { $0 = "\(error)" }
      }
    }
    if let message = outcome.withLock({ $0 }) {
      throw VaultStoreConformance.Violation(check, message)
    }
    let total = try count(in: store().read(id))
    try require(
      total == writerCount * roundCount, "\(writerCount * roundCount) changes left \(total)")
  }

  /// Bytes that show whether they are complete.
  private static func state(_ number: Int) -> [UInt8] {
    [UInt8](repeating: UInt8(number), count: 1000 + 997 * number)
  }

  private func count(in bytes: [UInt8]?) throws -> Int {
    guard let bytes, let first = bytes.first else {
      throw VaultStoreConformance.Violation(check, "an existing vault was read as absent")
    }
    try require(bytes == Self.state(Int(first)), "a vault was read that no writer wrote")
    return Int(first)
  }

  func obstaclesAreNotAbsence() throws {
    let bytes = Array("kept".utf8)
    try write(bytes, id)
    for obstacle in conformance.obstacles {
      try obstacle.raise()
      do {
        try requireFailure("read", obstacle.code) { try $0.read(id) }
        try requireIDsOrFailure(id, obstacle.code)
        try requireFailure("write", nil) { try $0.write([1], for: id) }
      } catch {
        try obstacle.clear()
        throw error
      }
      try obstacle.clear()
      try requireBytes(bytes, of: id, "after \(obstacle.code)")
      try requireIDs([id], "after \(obstacle.code)")
    }
  }

  /// A store can still list the vault during an obstacle; it must not list the store without it.
  private func requireIDsOrFailure(_ id: VaultID, _ code: VaultError.Code) throws {
    guard let ids = try? store().ids() else { return }
    try require(ids.contains(id), "during \(code), ids are \(ids)")
  }

  private func requireFailure<R>(
    _ call: String, _ code: VaultError.Code?, _ body: (any VaultStore) throws -> R
  ) throws {
    let wanted = code.map { "\($0)" } ?? "an error"
    do {
      let result = try body(try store())
      try require(false, "\(call) returned \(result) instead of \(wanted)")
    } catch let error as VaultError {
      try require(
        code == nil || error.code == code, "\(call) failed with \(error.code) instead of \(wanted)")
      try require(error.code != .doesNotExist, "\(call) reported an obstacle as absence")
    }
  }
}
