internal import Dispatch
internal import FileLayer
internal import Glibc
internal import Synchronization
internal import VaultCrypto

/// Carries out the requests that the processes of a home receive: `docs/reference/session-socket.md`, "Kinds".
///
/// It knows no socket. Requests that change a session are carried out one after the other.
final class SessionRequestHandler: Sendable {
  /// The process that has sent a request.
  struct Sender: Sendable {
    let peer: UnixSocket.Peer
    /// Rises with each accepted connection.
    let ticket: Int
    /// Whether it still waits for the reply.
    let isWaiting: @Sendable () -> Bool
  }

  private struct State {
    /// Whether the end of a session ends the engine's work; nil while it waits for an unlock.
    var servesInSession: (@Sendable () -> Bool)?
    var since: Int64
    var backOff = KeyBackOff()
    /// The newest connection whose `open` or `end` was carried out.
    var lastChange = 0
  }

  private let store: any VaultStore
  private let parameters: VaultParameters
  /// The directory of the listener.
  private let place: String
  private let events: SessionEventLog
  private let queue = DispatchQueue(label: "datavault.session-changes")
  private let state: Mutex<State>

  init(
    for store: any VaultStore, parameters: VaultParameters, place: String, events: SessionEventLog
  ) {
    self.store = store
    self.parameters = parameters
    self.place = place
    self.events = events
    state = Mutex(State(since: parameters.now().nanoseconds))
  }

  /// Says that the engine takes work; nil for one that waits for an unlock.
  func report(servesInSession: (@Sendable () -> Bool)?) {
    let now = parameters.now().nanoseconds
    state.withLock { state in
      if (state.servesInSession == nil) != (servesInSession == nil) { state.since = now }
      state.servesInSession = servesInSession
    }
  }

  /// Carries out a request; blocks the calling thread.
  func answer(_ request: borrowing SessionRequest, from sender: Sender) -> SessionReply {
    if request.kind == .endAll { return queue.sync { reply(endAll(sender), nil) } }
    guard let id = request.id,
      let location = try? SessionKeyLocation(of: id, in: store, parameters: parameters)
    else { return reply(.invalid, nil) }
    switch request.kind {
    case .status, .endAll: return reply(.done, location)
    case .open: return queue.sync { reply(open(request, id, at: location, sender), location) }
    case .end: return queue.sync { reply(end(location, sender), location) }
    case .check: return queue.sync { reply(check(id, at: location), location) }
    }
  }

  /// The reply to a frame that is no request.
  var refusal: SessionReply { reply(.invalid, nil) }

  /// Stores a session whose key opens the vault, in the place of every earlier one.
  private func open(
    _ request: borrowing SessionRequest, _ id: VaultID, at location: SessionKeyLocation,
    _ sender: Sender
  ) -> SessionReply.Result {
    let peer = sender.peer
    let now = parameters.sinceBoot()
    guard let session = LiveSession(parsing: request.payload, of: .process(serial: 0)),
      now < session.key.deadline, session.key.deadline - now <= VaultSession.maximumDuration
    else {
      events.warn("a session that has expired, or is too long, was refused", peer)
      return .invalid
    }
    guard state.withLock({ $0.backOff.wait(at: now) == .zero }) else {
      events.warn("a session was refused, after keys that did not open the vault", peer)
      return .backingOff
    }
    let key: KeyEnvelope?
    do throws(VaultError) { key = try storedKey(of: id) } catch { return .unreadable }
    guard key?.opens(with: session.contentKey) == true else {
      state.withLock { $0.backOff.recordFailure(at: now) }
      events.warn("a session was refused: its key does not open the vault", peer)
      return .wrongKey
    }
    state.withLock { $0.backOff = KeyBackOff() }
    // Each connection has a thread of its own, and they come here in any order.
    guard state.withLock({ sender.ticket > $0.lastChange }) else {
      events.warn("a session was refused, because a later lock or unlock was faster", peer)
      return .failed
    }
    // A lock can have come after the sender stopped waiting: its session must not begin then.
    guard sender.isWaiting() else {
      events.warn("a session was refused, because its sender has stopped waiting", peer)
      return .failed
    }
    do throws(VaultError) {
      var isInKernel = false
      let keyrings = SessionKeyrings(parameters)
      for holder in try location.holders() {
        if case .kernel = holder, keyrings.holds(request.payload, in: holder) {
          isInKernel = true
        } else {
          try location.revoke(holder)
        }
      }
      if isInKernel {
        noteChange(by: sender)
        parameters.processKeyring.noteSession(named: location.name)
        return .nothingToDo
      }
    } catch {
      return .failed
    }
    guard
      parameters.processKeyring.store(
        request.payload, as: location.name, deadline: session.key.deadline, place: place)
    else { return .failed }
    noteChange(by: sender)
    events.note("vault '\(id)' has a session from \(peer.words)")
    return .done
  }

  /// Ends the session that this process holds, and the one that it sees in the kernel.
  ///
  /// The sender can be a process for which the kernel refuses keys, or one of another user.
  private func end(_ location: SessionKeyLocation, _ sender: Sender) -> SessionReply.Result {
    noteChange(by: sender)
    do throws(VaultError) {
      return try location.end() ? .done : .nothingToDo
    } catch {
      return .failed
    }
  }

  private func endAll(_ sender: Sender) -> SessionReply.Result {
    noteChange(by: sender)
    let ended = SessionKeyrings(parameters).endAll(at: place)
    if ended.failure != nil { return .failed }
    return ended.count > 0 ? .done : .nothingToDo
  }

  private func noteChange(by sender: Sender) {
    state.withLock { $0.lastChange = max($0.lastChange, sender.ticket) }
  }

  /// Ends the sessions that do not open the present file of the vault.
  private func check(_ id: VaultID, at location: SessionKeyLocation) -> SessionReply.Result {
    let key: KeyEnvelope?
    do throws(VaultError) { key = try storedKey(of: id) } catch { return .unreadable }
    do throws(VaultError) {
      return try location.end(unlessOpening: key) ? .done : .nothingToDo
    } catch {
      return .failed
    }
  }

  /// The key envelope of the present file of a vault; nil if there is none.
  private func storedKey(of id: VaultID) throws(VaultError) -> KeyEnvelope? {
    guard let bytes = try store.read(id) else { return nil }
    return try VaultFile(bytes, of: id, in: store).key
  }

  private func reply(
    _ result: SessionReply.Result, _ location: SessionKeyLocation?
  ) -> SessionReply {
    let held = location.flatMap { parameters.processKeyring.find($0.name) }
    let now = parameters.sinceBoot()
    let (serves, since, retryDelay) = state.withLock {
      ($0.servesInSession, $0.since, $0.backOff.wait(at: now))
    }
    let activity: SessionReply.Activity =
      switch serves?() {
      case nil: .waiting
      case true?: .serving
      case false?: .servingWithoutSession
      }
    return SessionReply(
      result, activity, processID: getpid(), since: since, deadline: held?.deadline ?? .zero,
      retryDelay: retryDelay)
  }
}

/// When a listener accepts a key again after keys that did not open the vault.
struct KeyBackOff: Sendable {
  private static let freeFailureCount = 3
  private static let maximumWait = Duration.seconds(60)

  private var failureCount = 0
  private var end = Duration.zero

  /// The time until a key is accepted; zero if one is accepted now.
  func wait(at now: Duration) -> Duration { max(.zero, end - now) }

  mutating func recordFailure(at now: Duration) {
    failureCount += 1
    guard failureCount >= Self.freeFailureCount else { return }
    let doublings = min(failureCount - Self.freeFailureCount, 6)
    end = now + min(.seconds(1 << doublings), Self.maximumWait)
  }
}

/// The events of a listener: a repeated warning is logged at its 1st, 2nd, 4th, 8th time and so on.
final class SessionEventLog: Sendable {
  private let log: @Sendable (SessionListener.Event) -> Void
  private let counts = Mutex<[String: Int]>([:])

  init(_ log: @escaping @Sendable (SessionListener.Event) -> Void) { self.log = log }

  func note(_ what: String) { log(SessionListener.Event(isWarning: false, message: what)) }

  /// - Parameter what: one of few texts, with nothing from a frame.
  func warn(_ what: String, _ peer: UnixSocket.Peer? = nil) {
    let count = counts.withLock { counts in
      counts[what, default: 0] += 1
      return counts[what, default: 0]
    }
    guard count & (count - 1) == 0 else { return }
    let times = count == 1 ? "" : ", \(count) times so far"
    let origin = peer.map { ", from \($0.words)" } ?? ""
    log(SessionListener.Event(isWarning: true, message: "\(what)\(origin)\(times)"))
  }
}

extension UnixSocket.Peer {
  fileprivate var words: String { "process \(processID) of user \(userID)" }
}
