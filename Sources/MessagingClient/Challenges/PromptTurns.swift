internal import Synchronization
internal import VaultCrypto

/// Lets one handler at a time work for each protection space.
///
/// A caller that waits for the same result gets it from the one whose turn it is.
final class PromptTurns: Sendable {
  /// Whose results can be shared: the same location, scheme and handler object.
  struct Kind: Hashable, Sendable {
    let location: Location
    let scheme: Challenge.Scheme
    /// Nil for a handler that is no object; its results are not shared.
    let handler: ObjectIdentifier?

    func shares(with other: Kind) -> Bool { handler != nil && self == other }
  }

  /// A value for those who wait.
  final class SharedValue: Sendable {
    let authorization: SecretBytes
    init(_ authorization: consuming SecretBytes) { self.authorization = authorization }
  }

  /// How a wait ends.
  enum Turn: Sendable {
    /// The caller's turn, which it must end.
    case own
    case shared(SharedValue)
    /// The handler has returned nil to the one before.
    case stopped
    /// The task of the caller was cancelled.
    case cancelled
  }

  /// How a turn ends, for those who wait.
  enum Outcome: Sendable {
    case shared(SharedValue)
    case stopped
    /// Nothing to share: the next one has its turn.
    case next
  }

  private struct Waiter {
    let number: Int
    let kind: Kind
    let continuation: CheckedContinuation<Turn, Never>
  }

  private struct State {
    var waiters: [ProtectionSpace: [Waiter]] = [:]
    var nextNumber = 0
  }

  private let state = Mutex(State())

  /// How many wait for a space, for tests; nil if no one has a turn.
  func waiterCount(_ space: ProtectionSpace) -> Int? { state.withLock { $0.waiters[space]?.count } }

  /// Waits for a turn, or for the result of the one whose turn it is.
  func take(_ space: ProtectionSpace, _ kind: Kind) async -> Turn {
    let number = state.withLock { state in
      state.nextNumber += 1
      return state.nextNumber
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let turn: Turn? = state.withLock { state in
          if Task.isCancelled { return .cancelled }
          guard state.waiters[space] != nil else {
            state.waiters[space] = []
            return .own
          }
          state.waiters[space]?.append(
            Waiter(number: number, kind: kind, continuation: continuation))
          return nil
        }
        if let turn { continuation.resume(returning: turn) }
      }
    } onCancel: {
      let waiter = state.withLock { state -> Waiter? in
        guard let index = state.waiters[space]?.firstIndex(where: { $0.number == number }) else {
          return nil
        }
        return state.waiters[space]?.remove(at: index)
      }
      waiter?.continuation.resume(returning: .cancelled)
    }
  }

  /// Ends a turn.
  func end(_ space: ProtectionSpace, _ kind: Kind, _ outcome: Outcome) {
    let (sharing, next) = state.withLock { state -> ([Waiter], Waiter?) in
      var waiters = state.waiters.removeValue(forKey: space) ?? []
      var sharing: [Waiter] = []
      if case .next = outcome {
      } else {
        sharing = waiters.filter { $0.kind.shares(with: kind) }
        waiters.removeAll { $0.kind.shares(with: kind) }
      }
      guard !waiters.isEmpty else { return (sharing, nil) }
      let next = waiters.removeFirst()
      state.waiters[space] = waiters
      return (sharing, next)
    }
    let turn: Turn =
      switch outcome {
      case .shared(let value): .shared(value)
      case .stopped, .next: .stopped
      }
    for waiter in sharing { waiter.continuation.resume(returning: turn) }
    next?.continuation.resume(returning: .own)
  }
}
