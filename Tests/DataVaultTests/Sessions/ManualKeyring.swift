import DataVault
import FileLayer
import FileRecording
import Glibc
import Synchronization
import SystemPackage
import TestSupport
import VaultCrypto

/// An in-memory keyring on the test's own clock.
final class ManualKeyring: SessionKeyring {
  struct Entry {
    let name: String
    var bytes: [UInt8]
    let end: Duration
  }

  private struct State {
    var entries: [Int32: Entry] = [:]
    var lastSerial: Int32 = 0
    var findCount = 0
    var refusal: Int32?
    var irrevocableName: String?
    var beforeStoring: (@Sendable () -> Void)?
  }

  /// The time for which the kernel remembers expired keys.
  static let memory = Duration.seconds(300)

  let time: ManualTimeSource
  private let state = Mutex(State())

  init(time: ManualTimeSource = ManualTimeSource()) { self.time = time }

  /// The error with which every call fails; nil for none.
  var refusal: Int32? {
    get { state.withLock { $0.refusal } }
    set { state.withLock { $0.refusal = newValue } }
  }

  /// The name of an entry that cannot be revoked.
  var irrevocableName: String? {
    get { state.withLock { $0.irrevocableName } }
    set { state.withLock { $0.irrevocableName = newValue } }
  }

  /// A hook that runs once, just before the next store.
  var beforeStoring: (@Sendable () -> Void)? {
    get { state.withLock { $0.beforeStoring } }
    set { state.withLock { $0.beforeStoring = newValue } }
  }

  /// All entries, including expired ones.
  var entries: [Entry] { state.withLock { Array($0.entries.values) } }

  /// How often an entry was looked for, also in vain.
  var findCount: Int { state.withLock { $0.findCount } }

  /// Waits until the only watch of a session has acted on what it sees now.
  ///
  /// A watch begins its second look after it has acted on the first one.
  func waitForWatch() async throws {
    let count = findCount
    try await eventually("the watch looks twice") { findCount >= count + 2 }
  }

  /// Changes the payload of every entry.
  func rewrite(_ change: @Sendable (inout [UInt8]) -> Void) {
    state.withLock { state in
      for serial in Array(state.entries.keys) { change(&state.entries[serial]!.bytes) }
    }
  }

  func store(
    _ payload: borrowing SecretBytes, as name: String, wholeSeconds: UInt32
  ) throws(KeyringError) {
    let bytes = payload.array()
    let happening = state.withLock { $0.beforeStoring.take() }
    happening?()
    try access("add_key") { state in
      state.entries = state.entries.filter { $0.value.name != name }
      state.lastSerial += 1
      state.entries[state.lastSerial] = Entry(
        name: name, bytes: bytes, end: time.sinceBoot + .seconds(Int64(wholeSeconds)))
    }
  }

  func find(_ name: String) throws(KeyringError) -> KeyringEntry {
    state.withLock { $0.findCount += 1 }
    return try access("keyctl_search") { state in
      guard let (serial, entry) = state.entries.first(where: { $0.value.name == name }) else {
        return .absent
      }
      if time.sinceBoot < entry.end { return .present(serial: serial) }
      return time.sinceBoot < entry.end + Self.memory ? .expired : .absent
    }
  }

  func read(_ serial: Int32, byteCount: Int) throws(KeyringError) -> SecretBytes? {
    let entry = try access("keyctl_read") { $0.entries[serial] }
    guard let entry, time.sinceBoot < entry.end, entry.bytes.count == byteCount else { return nil }
    return SecretBytes(copying: entry.bytes)
  }

  func revoke(_ serial: Int32) throws(KeyringError) {
    let isRefused = try access("keyctl_revoke") { state in
      if let name = state.irrevocableName, state.entries[serial]?.name == name { return true }
      state.entries[serial] = nil
      return false
    }
    if isRefused { throw KeyringError("keyctl_revoke", .permissionDenied) }
  }

  func serials(withPrefix prefix: String) throws(KeyringError) -> [Int32] {
    try access("keyctl_read") { state in
      state.entries.filter { $0.value.name.hasPrefix(prefix) }.map(\.key)
    }
  }

  private func access<R>(_ call: String, _ body: (inout State) -> R) throws(KeyringError) -> R {
    try state.withLock { (state) throws(KeyringError) in
      if let refusal = state.refusal { throw KeyringError(call, Errno(rawValue: refusal)) }
      return body(&state)
    }
  }
}
