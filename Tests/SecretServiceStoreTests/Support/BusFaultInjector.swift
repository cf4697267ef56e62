import SecretServiceStore
import Synchronization

/// Ends a store's conversation with the service at one call: that call and all later ones fail.
///
/// This simulates a kill of the store's process.
final class BusFaultInjector: Sendable {
  private struct State {
    var callCount = 0
    var hasHappened = false
  }

  private let number: Int
  private let moment: BusMoment
  private let action: (@Sendable () -> Void)?
  private let state = Mutex(State())

  /// - Parameters:
  ///   - number: the number of the call, from 0, over all connections.
  ///   - action: an action in place of the failure, such as a kill of the service; nil fails the
  ///     calls.
  init(atCall number: Int, _ moment: BusMoment, doing action: (@Sendable () -> Void)? = nil) {
    self.number = number
    self.moment = moment
    self.action = action
  }

  /// Whether the fault has occurred: there were enough calls.
  var hasHappened: Bool { state.withLock { $0.hasHappened } }

  /// Whether the conversation goes on.
  func pass(_ moment: BusMoment) -> Bool {
    let (isNow, hasHappened) = state.withLock { state in
      let isNow = moment == self.moment && state.callCount == number && !state.hasHappened
      if isNow { state.hasHappened = true }
      if moment == .afterCall || isNow { state.callCount += 1 }
      return (isNow, state.hasHappened)
    }
    if isNow { action?() }
    return !hasHappened || action != nil
  }
}
