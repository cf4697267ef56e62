internal import Synchronization

/// Ends a store's conversation with the service at one call, for tests: that call and all later
/// ones fail.
///
/// This simulates a kill of the store's process.
package final class BusFaultInjector: Sendable {
  /// The side of the call on which the fault occurs.
  package enum Moment: Sendable, CaseIterable {
    /// Before the call: the service does not receive it.
    case beforeCall
    /// After the call: the service has carried it out, but the store does not receive the answer.
    case afterCall
  }

  private struct State {
    var callCount = 0
    var hasHappened = false
  }

  private let number: Int
  private let moment: Moment
  private let action: (@Sendable () -> Void)?
  private let state = Mutex(State())

  /// - Parameters:
  ///   - number: the number of the call, from 0, over all connections.
  ///   - action: an action in place of the failure, such as a kill of the service; nil fails the
  ///     calls.
  package init(
    atCall number: Int, _ moment: Moment, doing action: (@Sendable () -> Void)? = nil
  ) {
    self.number = number
    self.moment = moment
    self.action = action
  }

  /// Whether the fault has occurred: there were enough calls.
  package var hasHappened: Bool { state.withLock { $0.hasHappened } }

  func pass(_ moment: Moment) throws(BusFailure) {
    let (isNow, hasHappened) = state.withLock { state in
      let isNow = moment == self.moment && state.callCount == number && !state.hasHappened
      if isNow { state.hasHappened = true }
      if moment == .afterCall || isNow { state.callCount += 1 }
      return (isNow, state.hasHappened)
    }
    if isNow { action?() }
    if hasHappened, action == nil {
      throw BusFailure(.unanswered, "the conversation was interrupted on purpose")
    }
  }
}
