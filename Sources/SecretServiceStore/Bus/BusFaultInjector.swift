internal import Synchronization

/// Ends a store's conversation with the service at one call, as a kill of its process would, for tests:
/// that call and all later ones fail.
package final class BusFaultInjector: Sendable {
  /// On which side of the call.
  package enum Moment: Sendable, CaseIterable {
    /// The service never hears of it.
    case beforeCall
    /// The service has carried it out, and nobody hears of that.
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
  ///   - number: of the call, from 0, over all connections.
  ///   - action: done in place of the failure, such as a kill of the service; nil fails the calls.
  package init(
    atCall number: Int, _ moment: Moment, doing action: (@Sendable () -> Void)? = nil
  ) {
    self.number = number
    self.moment = moment
    self.action = action
  }

  /// Whether there were so many calls.
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
