// unsafe: a dispatch source is thread-safe, which its type does not say.
@unsafe @preconcurrency internal import Dispatch
internal import FileLayer
internal import Glibc
internal import Synchronization
internal import SystemPackage
internal import VaultCrypto

/// Listens on the session socket of one process and home: `docs/reference/session-socket.md`.
///
/// It blocks threads of its own and never one of the cooperative pool. ``close()`` removes the socket and wipes the
/// sessions that came through it.
package final class SessionListener: Sendable {
  /// An event for the log; it contains nothing from a frame.
  package struct Event: Sendable {
    package let isWarning: Bool
    package let message: String
  }

  static let maximumConnectionCount = 8
  /// The pause after a connection that the process had no descriptor or no memory for.
  private static let pauseOfAccepting = DispatchTimeInterval.seconds(1)

  private struct State {
    var isServing = false
    var since: Int64
    var connectionCount = 0
    var backOff = KeyBackOff()
    var eventCounts: [String: Int] = [:]
    var isClosed = false
  }

  private let store: any VaultStore
  private let parameters: VaultParameters
  private let directory: RunDirectory
  private let socket: UnixSocket
  private let name: String
  private let source: any DispatchSourceRead
  private let queue = DispatchQueue(label: "datavault.session-socket")
  /// Carries out what changes a session, in the order of the requests' arrival.
  private let changes = DispatchQueue(label: "datavault.session-changes")
  private let state: Mutex<State>
  private let log: @Sendable (Event) -> Void
  private var place: String { directory.path.string }

  /// Begins to listen; blocks the calling thread for up to 2 seconds.
  ///
  /// - Parameter log: takes the events, on the threads of the listener.
  /// - Returns: nil for a store without a directory for sockets, and while the home does not exist.
  /// - Throws: `foreignFile`, `permissionsTooOpen`, `unreadable`, `busy`.
  package init?(
    for store: any VaultStore, parameters: VaultParameters,
    log: @escaping @Sendable (Event) -> Void
  ) throws(VaultError) {
    guard let path = store.processDirectory,
      let directory = try RunDirectory.open(path, creates: true)
    else { return nil }
    let name = "\(getpid())-\(RandomSource.system.bytes(count: 8).hexadecimal).sock"
    let socket = try directory.locked(timeLimit: parameters.socketTimeLimit) {
      () throws(VaultError) in
      try directory.removeStaleSockets()
      do throws(Errno) {
        return try UnixSocket.listen(at: name, in: directory)
      } catch {
        throw .writeFailed(FileError(.create, path.appending(name), error))
      }
    }
    self.store = store
    self.parameters = parameters
    self.directory = directory
    self.socket = socket
    self.name = name
    self.log = log
    state = Mutex(State(since: parameters.now().nanoseconds))
    source = DispatchSource.makeReadSource(
      fileDescriptor: socket.descriptor, queue: queue)
    parameters.processKeyring.addListener(at: place)
    // The source holds the socket until it is cancelled: its number must not be used again before.
    source.setEventHandler { [weak self] in self?.acceptConnections() }
    source.setCancelHandler { withExtendedLifetime(socket) {} }
    source.activate()
  }

  deinit { close() }

  /// Says whether the engine takes work, for `datavault status`.
  package func report(isServing: Bool) {
    let now = parameters.now().nanoseconds
    state.withLock { state in
      guard state.isServing != isServing else { return }
      state.isServing = isServing
      state.since = now
    }
  }

  /// Removes the socket and wipes the sessions that came through it; a second call does nothing.
  package func close() {
    let wasClosed = state.withLock { state in
      defer { state.isClosed = true }
      return state.isClosed
    }
    guard !wasClosed else { return }
    directory.remove(name)
    source.cancel()
    parameters.processKeyring.removeListener(at: place)
  }

  // MARK: Connections

  private func acceptConnections() {
    while let connection = nextConnection() {
      guard let peer = connection.peer else { continue }
      guard peer.userID == geteuid() || peer.userID == 0 else {
        report("a connection of another user was refused", peer)
        continue
      }
      let isAccepted = state.withLock { state in
        guard state.connectionCount < Self.maximumConnectionCount, !state.isClosed else {
          return false
        }
        state.connectionCount += 1
        return true
      }
      guard isAccepted else {
        report("a connection was closed, because too many are open", peer)
        continue
      }
      DispatchQueue(label: "datavault.session-connection").async { [weak self] in
        self?.serve(connection, peer)
        self?.state.withLock { $0.connectionCount -= 1 }
      }
    }
  }

  /// The next connection; nil if none waits, or none can be taken now.
  private func nextConnection() -> UnixSocket? {
    do throws(Errno) {
      return try socket.accept()
    } catch {
      report("a connection has to wait (\(error))")
      // The connection stays in the kernel's queue and would call the source again and again.
      source.suspend()
      // The closure holds the source, which must not be released while it is suspended.
      queue.asyncAfter(deadline: .now() + Self.pauseOfAccepting) { [source] in source.resume() }
      return nil
    }
  }

  private func serve(_ connection: UnixSocket, _ peer: UnixSocket.Peer) {
    let deadline = ContinuousClock.now + parameters.socketTimeLimit
    do throws(Errno) {
      let frame = try connection.receive(
        maximumByteCount: SessionRequest.maximumByteCount, before: deadline)
      // Another process looks whether the socket is stale.
      guard frame.byteCount > 0 else { return }
      let reply: SessionReply
      if let request = SessionRequest(parsing: frame) {
        reply = answer(request, Sender(connection, peer, deadline))
      } else {
        report("a request that breaks the format was refused", peer)
        reply = self.reply(.invalid, nil)
      }
      try connection.send(reply.frame, before: deadline)
      // A program that this process has just started can still have the connection.
      connection.endSending()
    } catch {
      report(
        error == .timedOut
          ? "a connection was closed at its time limit" : "a connection failed (\(error))", peer)
    }
  }

  /// The process that waits for the reply to a request.
  private struct Sender {
    let peer: UnixSocket.Peer
    private let connection: UnixSocket
    private let deadline: ContinuousClock.Instant

    init(_ connection: UnixSocket, _ peer: UnixSocket.Peer, _ deadline: ContinuousClock.Instant) {
      self.connection = connection
      self.peer = peer
      self.deadline = deadline
    }

    var isWaiting: Bool { ContinuousClock.now < deadline && !connection.isAbandoned }
  }

  private func answer(_ request: borrowing SessionRequest, _ sender: Sender) -> SessionReply {
    guard
      let location = try? SessionKeyLocation(of: request.id, in: store, parameters: parameters)
    else { return reply(.invalid, nil) }
    if request.kind == .status { return reply(.done, location) }
    return changes.sync {
      let result: SessionReply.Result
      switch request.kind {
      case .status: result = .done
      case .open: result = open(request, at: location, sender)
      case .end: result = end(location)
      case .check: result = check(request.id, at: location)
      }
      return reply(result, location)
    }
  }

  /// Stores a session whose key opens the vault.
  private func open(
    _ request: borrowing SessionRequest, at location: SessionKeyLocation, _ sender: Sender
  ) -> SessionReply.Result {
    let peer = sender.peer
    let now = parameters.sinceBoot()
    guard let session = LiveSession(parsing: request.payload, of: 0),
      now < session.key.deadline,
      session.key.deadline - now <= VaultSession.maximumDuration
    else {
      report("a session that has expired, or is too long, was refused", peer)
      return .invalid
    }
    guard state.withLock({ $0.backOff.wait(at: now) == .zero }) else {
      report("a session was refused, after keys that did not open the vault", peer)
      return .backingOff
    }
    guard let opens = opens(request.id, with: session.contentKey) else { return .unreadable }
    guard opens else {
      state.withLock { $0.backOff.recordFailure(at: now) }
      report("a session was refused: its key does not open the vault", peer)
      return .wrongKey
    }
    state.withLock { $0.backOff = KeyBackOff() }
    // A lock can have come after the sender stopped waiting: its session must not begin then.
    guard sender.isWaiting else {
      report("a session was refused, because its sender has stopped waiting", peer)
      return .failed
    }
    if isInKernel(request.payload, as: location.name) {
      // An earlier session of the socket would have precedence.
      if let (serial, _) = parameters.processKeyring.find(location.name) {
        parameters.processKeyring.revoke(serial)
      }
      return .nothingToDo
    }
    guard
      parameters.processKeyring.store(
        request.payload, as: location.name, deadline: session.key.deadline, place: place)
    else { return .failed }
    log(Event(isWarning: false, message: "vault '\(request.id)' has a session from \(peer.words)"))
    return .done
  }

  private func isInKernel(_ payload: borrowing SecretBytes, as name: String) -> Bool {
    guard case .present(let serial)? = try? parameters.sessionKeyring.find(name),
      let stored = try? parameters.sessionKeyring.read(serial, byteCount: payload.byteCount)
    else { return false }
    return SecretBytes.isEqual(stored, payload)
  }

  /// Ends the session that this process holds, and the one that it sees in the kernel.
  ///
  /// The sender can be a process for which the kernel refuses keys, or one of another user.
  private func end(_ location: SessionKeyLocation) -> SessionReply.Result {
    do throws(VaultError) {
      return try location.end() ? .done : .nothingToDo
    } catch {
      return .failed
    }
  }

  /// As ``end(_:)``, for sessions that do not open the present file of the vault.
  private func check(_ id: VaultID, at location: SessionKeyLocation) -> SessionReply.Result {
    do throws(VaultError) {
      var hasEnded = false
      // One of this process, and one in the kernel.
      for _ in 0..<2 {
        guard let session = try location.find() else { break }
        guard let opens = opens(id, with: session.contentKey) else { return .unreadable }
        if opens { break }
        try location.revoke(session.key)
        hasEnded = true
      }
      return hasEnded ? .done : .nothingToDo
    } catch {
      return .failed
    }
  }

  /// Whether a key opens the present file of the vault; nil if the file cannot be read.
  private func opens(_ id: VaultID, with contentKey: borrowing SecretBytes) -> Bool? {
    do throws(VaultError) {
      guard let bytes = try store.read(id) else { return false }
      return try VaultFile(bytes, of: id, in: store).key.opens(with: contentKey)
    } catch {
      return nil
    }
  }

  private func reply(
    _ result: SessionReply.Result, _ location: SessionKeyLocation?
  ) -> SessionReply {
    let held = location.flatMap { parameters.processKeyring.find($0.name) }
    let now = parameters.sinceBoot()
    return state.withLock { state in
      SessionReply(
        result, isServing: state.isServing, processID: getpid(), since: state.since,
        deadline: held?.deadline ?? .zero, retryDelay: state.backOff.wait(at: now))
    }
  }

  /// Logs an event at its 1st, 2nd, 4th, 8th time and so on.
  private func report(_ what: String, _ peer: UnixSocket.Peer? = nil) {
    let count = state.withLock { state in
      state.eventCounts[what, default: 0] += 1
      return state.eventCounts[what, default: 0]
    }
    guard count & (count - 1) == 0 else { return }
    let times = count == 1 ? "" : ", \(count) times so far"
    let origin = peer.map { ", from \($0.words)" } ?? ""
    log(Event(isWarning: true, message: "\(what)\(origin)\(times)"))
  }
}

extension UnixSocket.Peer {
  fileprivate var words: String { "process \(processID) of user \(userID)" }
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
