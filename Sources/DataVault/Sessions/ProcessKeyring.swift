internal import Dispatch
internal import FileLayer
internal import Synchronization
internal import VaultCrypto

/// The sessions that this process has received by a socket, in locked memory.
///
/// They end with their deadline, by `datavault lock`, when the last listener of their home ends, and with the
/// process.
package final class ProcessKeyring: Sendable {
  /// The keyring of this process.
  package static let shared = ProcessKeyring()

  /// A session that the keyring holds.
  private final class Entry: Sendable {
    let serial: Int32
    let payload: SecretBytes
    let deadline: Duration
    /// The listeners through which it came.
    let place: String

    init(_ serial: Int32, _ payload: consuming SecretBytes, deadline: Duration, place: String) {
      self.serial = serial
      self.payload = payload
      self.deadline = deadline
      self.place = place
    }
  }

  private struct State {
    var entries: [String: Entry] = [:]
    var lastSerial: Int32 = 0
    var toldCounts: [String: Int] = [:]
    /// The listeners by their directory.
    var listenerCounts: [String: Int] = [:]
    var sweepIsScheduled = false
  }

  private let state = Mutex(State())
  private let now: @Sendable () -> Duration
  private let queue = DispatchQueue(label: "datavault.process-keyring")

  /// - Parameter now: the time since boot.
  package init(now: @escaping @Sendable () -> Duration = { SystemTimeSource.sinceBoot }) {
    self.now = now
  }

  /// Whether a session can come through a socket in this directory.
  func hasListener(at place: String?) -> Bool {
    state.withLock { state in place.map { state.listenerCounts[$0] != nil } ?? false }
  }

  func addListener(at place: String) {
    state.withLock { $0.listenerCounts[place, default: 0] += 1 }
  }

  /// Wipes the sessions of a directory that no listener of this process serves any more.
  func removeListener(at place: String) {
    state.withLock { state in
      let count = state.listenerCounts[place, default: 1] - 1
      state.listenerCounts[place] = count > 0 ? count : nil
      if count <= 0 { state.entries = state.entries.filter { $0.value.place != place } }
    }
  }

  /// Stores a session and replaces an earlier one.
  ///
  /// - Returns: false if the last listener of the directory has ended; nothing is stored then.
  func store(
    _ payload: borrowing SecretBytes, as name: String, deadline: Duration, place: String
  ) -> Bool {
    let copy = payload.copy()
    var box = Optional(consume copy)
    let isStored = state.withLock { state in
      guard state.listenerCounts[place] != nil, let payload = box.take() else { return false }
      state.lastSerial += 1
      state.entries[name] = Entry(state.lastSerial, payload, deadline: deadline, place: place)
      state.toldCounts[name, default: 0] += 1
      return true
    }
    if isStored { scheduleSweep() }
    return isStored
  }

  /// Notes a session that the kernel holds.
  func noteSession(named name: String) {
    state.withLock { $0.toldCounts[name, default: 0] += 1 }
  }

  /// How many sessions this process was told of: those that it stored, and those that it saw in the kernel.
  func toldCount(of name: String) -> Int { state.withLock { $0.toldCounts[name, default: 0] } }

  func find(_ name: String) -> (serial: Int32, deadline: Duration)? {
    sweep()
    return state.withLock { state in state.entries[name].map { ($0.serial, $0.deadline) } }
  }

  func read(_ serial: Int32, byteCount: Int) -> SecretBytes? {
    sweep()
    let entry = state.withLock { $0.entries.values.first { $0.serial == serial } }
    guard let entry, entry.payload.byteCount == byteCount else { return nil }
    return entry.payload.copy()
  }

  func revoke(_ serial: Int32) {
    state.withLock { state in
      state.entries = state.entries.filter { $0.value.serial != serial }
    }
  }

  /// The sessions that came through the listeners of this directory; nil for all.
  func serials(at place: String?) -> [Int32] {
    sweep()
    return state.withLock { state in
      state.entries.values.filter { place == nil || $0.place == place }.map(\.serial)
    }
  }

  /// Wipes what has expired.
  private func sweep() {
    let now = now()
    state.withLock { state in
      guard state.entries.values.contains(where: { $0.deadline <= now }) else { return }
      state.entries = state.entries.filter { $0.value.deadline > now }
    }
  }

  /// Wipes the next session at its deadline, also if no one asks for it.
  private func scheduleSweep() {
    let now = now()
    let rest = state.withLock { state -> Duration? in
      guard !state.sweepIsScheduled, let next = state.entries.values.map(\.deadline).min() else {
        return nil
      }
      state.sweepIsScheduled = true
      return next - now
    }
    guard let rest else { return }
    // In slices: the clock of the queue stops while the machine is asleep.
    let pause = min(max(rest, .milliseconds(10)), .seconds(10))
    queue.asyncAfter(deadline: .now() + .milliseconds(Int(pause.wholeMilliseconds))) {
      [weak self] in
      guard let self else { return }
      state.withLock { $0.sweepIsScheduled = false }
      sweep()
      scheduleSweep()
    }
  }
}
