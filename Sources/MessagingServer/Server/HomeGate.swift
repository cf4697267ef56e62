internal import Logging
internal import MessagingQueue
internal import NIOCore
internal import Synchronization

/// Lets requests reach the home while its vault is open and it is not cut off from its cluster, and holds those that can
/// wait while it is not.
final class HomeGate: Sendable {
  private struct Held {
    let exchange: HTTPExchange
    let response: @Sendable () -> HTTPResponse
    var timer: Scheduled<Void>?
  }

  private struct State {
    var home: OpenHome?
    var held: [UInt64: Held] = [:]
    var nextNumber: UInt64 = 0
  }

  private let state = Mutex(State())
  private let firstOpening = AsyncStream.makeStream(of: Void.self)

  /// Waits until the gate has opened for the first time, or the task is cancelled; one caller can wait.
  func waitForFirstOpening() async {
    for await _ in firstOpening.stream { return }
  }

  /// The open home; nil while its vault is locked, and while it is cut off from its cluster: access can have changed.
  var home: OpenHome? { openHome.flatMap { $0.engine.isCurrent ? $0 : nil } }

  /// The open home, also while it is cut off.
  var openHome: OpenHome? { state.withLock { $0.home } }

  /// Whether the home is open and cut off.
  var isCutOff: Bool { openHome.map { !$0.engine.isCurrent } ?? false }

  /// Why requests do not reach the home now, for people.
  var refusal: String { isCutOff ? Self.cutOff : "the server is locked" }

  static let cutOff = "the server is cut off from its cluster: try again later"

  /// Opens the gate, and answers everything that is held, so that its clients ask again.
  func open(_ home: OpenHome) {
    state.withLock { $0.home = home }
    firstOpening.continuation.finish()
    releaseHeld()
  }

  /// Closes the gate.
  func close() { state.withLock { $0.home = nil } }

  /// Answers what is held whenever the home of a cluster is no longer cut off, until the task is cancelled.
  func followCluster(of home: OpenHome) async {
    var wasCurrent = true
    while !Task.isCancelled {
      let isCurrent = home.engine.isCurrent
      if isCurrent != wasCurrent {
        home.operations.logger.notice(
          isCurrent
            ? "the brokers of the cluster answer again"
            : "cut off from the brokers of the cluster: clients are refused for now")
      }
      // It can have been cut off for less than a round.
      if isCurrent { releaseHeld() }
      wasCurrent = isCurrent
      try? await Task.sleep(for: .milliseconds(200))
    }
  }

  /// Answers everything that is held.
  func releaseHeld() {
    let held = state.withLock { state in
      defer { state.held = [:] }
      return Array(state.held.values)
    }
    for held in held {
      held.timer?.cancel()
      held.exchange.answer(held.response())
    }
  }

  /// Answers after a time, or as soon as the gate opens.
  func hold(
    _ exchange: HTTPExchange, for time: Duration,
    _ response: @escaping @Sendable () -> HTTPResponse
  ) {
    let number = state.withLock { state -> UInt64? in
      guard state.home.map({ !$0.engine.isCurrent }) ?? true else { return nil }
      state.nextNumber += 1
      state.held[state.nextNumber] = Held(exchange: exchange, response: response)
      return state.nextNumber
    }
    // It has opened in between.
    guard let number else { return exchange.answer(response()) }
    let timer = exchange.eventLoop.scheduleTask(in: TimeAmount(time)) { [self] in
      if remove(number) != nil { exchange.answer(response()) }
    }
    let isHeld = state.withLock { state in
      state.held[number]?.timer = timer
      return state.held[number] != nil
    }
    if !isHeld { timer.cancel() }
    exchange.onAbandon { [self] in remove(number)?.timer?.cancel() }
  }

  /// How many requests are held.
  var heldCount: Int { state.withLock { $0.held.count } }

  @discardableResult
  private func remove(_ number: UInt64) -> Held? {
    state.withLock { $0.held.removeValue(forKey: number) }
  }
}
