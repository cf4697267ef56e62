import DataVault
import DataVaultTesting
import FileLayer
import FileRecording
import Synchronization
import TestSupport
import Testing

/// Fast test vaults whose clocks and sleep a test controls.
struct ClockedVaults: Sendable {
  let store: any VaultStore
  let time = ManualTimeSource()
  let alarm = ManualAlarm()

  init(_ store: any VaultStore = InMemoryVaultStore()) { self.store = store }

  var parameters: VaultParameters {
    var parameters = VaultParameters.cheap
    parameters.now = { [time] in time.now }
    parameters.sinceBoot = { [time] in time.sinceBoot }
    parameters.sleep = { [time, alarm] in try await alarm.sleep($0, on: time) }
    return parameters
  }

  func make(
    _ password: String = "right", policy: VaultPolicy? = nil
  ) async throws(VaultError) -> Vault {
    try await Vault.create(
      .messaging, in: store, credentials: credentials(password), policy: policy,
      parameters: parameters)
  }

  /// The vault as another process opens it.
  func found() async throws(VaultError) -> Vault {
    try await Vault.get(.messaging, in: store, parameters: parameters)
  }

  /// The error of an attempt by another process; nil when the vault opens.
  func attempt(_ password: String) async -> VaultError.Code? {
    await code { try await found().unlock(with: credentials(password)) }
  }

  /// Makes attempts with a wrong password, each after the longest wait.
  func fail(times count: Int, sourceLocation: SourceLocation = #_sourceLocation) async {
    for _ in 0..<count {
      advance(by: .seconds(900))
      #expect(await attempt("wrong") == .wrongPassword, sourceLocation: sourceLocation)
    }
  }

  func advance(by duration: Duration) {
    time.advance(by: duration)
    alarm.notify(at: time.sinceBoot)
  }

  /// The stored record of attempts.
  func record() throws -> String? {
    try store.readAttempts(.messaging).map { String(decoding: $0, as: UTF8.self) }
  }
}

/// A sleep on a clock that changes only when a test moves it.
final class ManualAlarm: Sendable {
  private struct State {
    var sleepers: [Int: (end: Duration, CheckedContinuation<Void, any Error>)] = [:]
    var nextNumber = 0
  }

  private let state = Mutex(State())

  var sleeperCount: Int { state.withLock { $0.sleepers.count } }

  func sleep(_ duration: Duration, on time: ManualTimeSource) async throws {
    let number = state.withLock { state in
      state.nextNumber += 1
      return state.nextNumber
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let isCancelled = state.withLock { state in
          state.sleepers[number] = (time.sinceBoot + duration, continuation)
          return Task.isCancelled
        }
        if isCancelled { wake(number, throwing: CancellationError()) }
      }
    } onCancel: {
      wake(number, throwing: CancellationError())
    }
  }

  /// Wakes the sleepers whose time has come.
  func notify(at now: Duration) {
    let numbers = state.withLock { $0.sleepers.filter { $0.value.end <= now }.map(\.key) }
    for number in numbers { wake(number, throwing: nil) }
  }

  private func wake(_ number: Int, throwing error: (any Error)?) {
    guard let (_, continuation) = state.withLock({ $0.sleepers.removeValue(forKey: number) })
    else { return }
    if let error { continuation.resume(throwing: error) } else { continuation.resume() }
  }
}
