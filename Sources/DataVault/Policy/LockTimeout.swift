/// When an unlocked vault locks itself, on the boot clock.
struct LockTimeout: Sendable, Equatable {
  /// The unlock, or the last extension.
  private var start: Duration
  /// Zero for never.
  private var length: Duration

  init(_ policy: VaultPolicy, start: Duration) {
    self.start = start
    length = .seconds(policy.lockTimeoutSeconds)
  }

  /// The moment, in time since boot; nil for never.
  var deadline: Duration? {
    length > .zero ? start + length : nil
  }

  func isOver(at now: Duration) -> Bool {
    deadline.map { now >= $0 } ?? false
  }

  /// Counts from now on.
  mutating func restart(at now: Duration) {
    start = now
  }

  /// Takes over a policy: another length counts from now on.
  mutating func follow(_ policy: VaultPolicy, at now: Duration) {
    let next = LockTimeout(policy, start: now)
    if next.length != length { self = next }
  }
}
