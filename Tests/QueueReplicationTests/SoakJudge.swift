import MessagingQueue
import Synchronization

/// Knows what nodes have acknowledged to the callers of a ``NodeSoak``, and finds what breaks a promise.
final class SoakJudge: Sendable {
  /// A message of the channel that nothing is removed from.
  struct Publication {
    let publisher: Int
    let number: Int
    let key: String?
    var isAcknowledged = false
    /// A release with a delay: it holds back no other message of its key from then on.
    var wasDelayed = false
    /// A worker has begun to acknowledge it.
    var isSettling = false
    var isDone = false
    /// A worker was not told whether its acknowledgement counts.
    var isUnknown = false
  }

  private struct Hold {
    let text: String
    let key: String?
    let worker: Int
    var until: ContinuousClock.Instant
  }

  struct Totals {
    var acknowledged = 0
    var leased = 0
    var settled = 0
    var faults = 0
    var undone = 0

    static func + (one: Totals, other: Totals) -> Totals {
      Totals(
        acknowledged: one.acknowledged + other.acknowledged, leased: one.leased + other.leased,
        settled: one.settled + other.settled, faults: one.faults + other.faults,
        undone: one.undone + other.undone)
    }
  }

  private struct State {
    var violations: [String] = []
    var publications: [String: Publication] = [:]
    /// By consumer and text.
    var holds: [String: Hold] = [:]
    var doneAt: [String: ContinuousClock.Instant] = [:]
    var totals = Totals()
  }

  private let state = Mutex(State())
  /// Whether brokers forget: then settlements that were answered can be undone.
  private let brokersForget: Bool

  init(brokersForget: Bool) { self.brokersForget = brokersForget }

  var violations: [String] { state.withLock(\.violations) }
  var totals: Totals { state.withLock(\.totals) }
  var publications: [String: Publication] { state.withLock(\.publications) }

  func fail(_ violation: String) { state.withLock { $0.violations.append(violation) } }

  func noteFault(undone: Int = 0) {
    state.withLock {
      $0.totals.faults += 1
      $0.totals.undone += undone
    }
  }

  /// An error that a caller has got.
  func check(_ error: EngineError, _ operation: String, expected other: EngineError.Code...) {
    let expected: Set<EngineError.Code> = [.outcomeUnknown, .stopped, .busy, .cancelled]
    if expected.union(other).contains(error.code) { return }
    fail("\(operation): \(error.code): \(error.message)")
  }

  // MARK: Publishing

  func willPublish(_ text: String, publisher: Int, number: Int, key: String?) {
    state.withLock {
      $0.publications[text] = Publication(publisher: publisher, number: number, key: key)
    }
  }

  func noteAcknowledged(_ texts: [String]) {
    state.withLock { state in
      state.totals.acknowledged += texts.count
      for text in texts { state.publications[text]?.isAcknowledged = true }
    }
  }

  // MARK: Leases

  /// A worker has got a message.
  ///
  /// - Parameters:
  ///   - begun: when the receive began.
  ///   - until: no earlier than this its lease ends.
  func noteReceived(
    _ text: String, for consumer: String, by worker: Int, begun: ContinuousClock.Instant,
    until: ContinuousClock.Instant
  ) {
    state.withLock { state in
      state.totals.leased += 1
      let now = ContinuousClock.now
      let slot = consumer + " " + text
      state.holds = state.holds.filter { $0.value.until > now }
      let publication = state.publications[text]
      let key = publication?.key
      if let other = state.holds[slot] {
        state.violations.append("\(text) is leased to workers \(other.worker) and \(worker)")
      }
      if let key,
        let other = state.holds.values.first(where: { $0.key == key && $0.text != text })
      {
        state.violations.append("\(text) and \(other.text) of one key are leased")
      }
      if !brokersForget, let done = state.doneAt[slot], done < begun {
        state.violations.append("\(text) is leased after it was acknowledged")
      }
      if let key, let publication {
        for (earlier, other) in state.publications
        where other.key == key && other.number < publication.number && other.isAcknowledged
          && !other.isSettling && !other.wasDelayed
        {
          state.violations.append("\(text) of key \(key) overtakes \(earlier)")
        }
      }
      state.holds[slot] = Hold(text: text, key: key, worker: worker, until: until)
    }
  }

  func noteExtended(_ text: String, for consumer: String, until: ContinuousClock.Instant) {
    state.withLock { $0.holds[consumer + " " + text]?.until = until }
  }

  /// A worker gives a message back, in one way or another: it holds it no more.
  func willSettle(
    _ text: String, for consumer: String, acknowledges: Bool = false, delays: Bool = false
  ) {
    state.withLock { state in
      state.holds[consumer + " " + text] = nil
      if acknowledges { state.publications[text]?.isSettling = true }
      if delays { state.publications[text]?.wasDelayed = true }
    }
  }

  func noteAcknowledgement(_ text: String, for consumer: String, _ error: EngineError?) {
    state.withLock { state in
      switch error?.code {
      case nil:
        state.totals.settled += 1
        state.doneAt[consumer + " " + text] = .now
        state.publications[text]?.isDone = true
      case .unknownLease: break
      default: state.publications[text]?.isUnknown = true
      }
    }
  }

  // MARK: The end

  /// Judges the log of the channel that nothing is removed from, once nodes are at rest.
  ///
  /// - Parameters:
  ///   - texts: all messages, in their order.
  ///   - open: those that the consumer is not done with.
  func judge(_ texts: [String], open: Set<String>) {
    let publications = publications
    var last: [Int: Int] = [:]
    var found: Set<String> = []
    for text in texts {
      guard let publication = publications[text] else {
        fail("\(text) was not published")
        continue
      }
      if !found.insert(text).inserted { fail("\(text) is there twice") }
      if let before = last[publication.publisher], before > publication.number {
        fail("\(text) is behind a later message of its publisher")
      }
      last[publication.publisher] = publication.number
    }
    for (text, publication) in publications {
      if publication.isAcknowledged, !found.contains(text) { fail("\(text) is lost") }
      guard found.contains(text), !brokersForget else { continue }
      if publication.isDone, open.contains(text) { fail("\(text) is open, but acknowledged") }
      if !publication.isDone, !publication.isUnknown, !open.contains(text) {
        fail("\(text) is done, and no worker was told so")
      }
    }
  }
}
