import DataVault
import MessagingQueue
import Synchronization
import TestSupport
import Testing

/// A vault that is locked while publishers work.
@Suite struct LockedWhilePublishingTests {
  private let place = EngineHome()

  /// The results that publishers got.
  private final class Account: Sendable {
    private struct State {
      var kept: Set<String> = []
      var codes: [EngineError.Code] = []
    }

    private let state = Mutex(State())

    var kept: Set<String> { state.withLock { $0.kept } }
    var codes: [EngineError.Code] { state.withLock { $0.codes } }

    func keep(_ text: String) { state.withLock { _ = $0.kept.insert(text) } }
    func refuse(_ code: EngineError.Code) { state.withLock { $0.codes.append(code) } }
  }

  @Test(arguments: [0, 1, 2, 5, 10, 30])
  func `a lock keeps the messages published before it, and stores no others`(
    count: Int
  ) async throws {
    let vault = try await place.makeVault()
    let engine = try await place.start(vault)
    let account = Account()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for publisher in 0..<4 {
        group.addTask {
          for number in 0... {
            let text = "\(publisher) \(number)"
            do throws(EngineError) {
              try await engine.publish(Message(channel: .orders, payload: Array(text.utf8)))
              account.keep(text)
            } catch {
              return account.refuse(error.code)
            }
          }
        }
      }
      group.addTask {
        try await eventually { account.kept.count >= count }
        await vault.lock()
      }
      try await group.waitForAll()
    }
    #expect(account.codes == Array(repeating: .vaultLocked, count: 4))
    #expect(account.kept.count >= count)
    #expect(try await engine.settledState() == .refused(.vaultLocked))

    let next = try await place.start(place.unlockedVault())
    let texts = try await next.receive(from: .orders, maximumCount: 100_000).map(\.text)
    #expect(Set(texts) == account.kept && texts.count == account.kept.count)
    try await next.stop()
  }
}
