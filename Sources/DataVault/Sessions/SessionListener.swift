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
    var connectionCount = 0
    var acceptedCount = 0
    var isClosed = false
  }

  private let parameters: VaultParameters
  private let directory: RunDirectory
  private let socket: UnixSocket
  private let name: String
  private let source: any DispatchSourceRead
  private let queue = DispatchQueue(label: "datavault.session-socket")
  private let requests: SessionRequestHandler
  private let events: SessionEventLog
  private let state = Mutex(State())
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
    self.parameters = parameters
    self.directory = directory
    self.socket = socket
    self.name = name
    events = SessionEventLog(log)
    requests = SessionRequestHandler(
      for: store, parameters: parameters, place: path.string, events: events)
    source = DispatchSource.makeReadSource(
      fileDescriptor: socket.descriptor, queue: queue)
    parameters.processKeyring.addListener(at: place)
    // The source holds the socket until it is cancelled: its number must not be used again before.
    source.setEventHandler { [weak self] in self?.acceptConnections() }
    source.setCancelHandler { withExtendedLifetime(socket) {} }
    source.activate()
  }

  deinit { close() }

  /// Says that the engine takes work, for `datavault status` and `lock`.
  ///
  /// - Parameter servesInSession: whether the end of a session ends that; nil for an engine that waits for an unlock.
  package func report(servesInSession: (@Sendable () -> Bool)?) {
    requests.report(servesInSession: servesInSession)
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
        events.warn("a connection of another user was refused", peer)
        continue
      }
      let ticket: Int? = state.withLock { state in
        guard state.connectionCount < Self.maximumConnectionCount, !state.isClosed else {
          return nil
        }
        state.connectionCount += 1
        state.acceptedCount += 1
        return state.acceptedCount
      }
      guard let ticket else {
        events.warn("a connection was closed, because too many are open", peer)
        continue
      }
      DispatchQueue(label: "datavault.session-connection").async { [weak self] in
        self?.serve(connection, peer, ticket)
        self?.state.withLock { $0.connectionCount -= 1 }
      }
    }
  }

  /// The next connection; nil if none waits, or none can be taken now.
  private func nextConnection() -> UnixSocket? {
    do throws(Errno) {
      return try socket.accept()
    } catch {
      events.warn("a connection has to wait (\(error))")
      // The connection stays in the kernel's queue and would call the source again and again.
      source.suspend()
      // The closure holds the source, which must not be released while it is suspended.
      queue.asyncAfter(deadline: .now() + Self.pauseOfAccepting) { [source] in source.resume() }
      return nil
    }
  }

  private func serve(_ connection: UnixSocket, _ peer: UnixSocket.Peer, _ ticket: Int) {
    let deadline = ContinuousClock.now + parameters.socketTimeLimit
    do throws(Errno) {
      let frame = try connection.receive(
        maximumByteCount: SessionRequest.maximumByteCount, before: deadline)
      // Another process looks whether the socket is stale.
      guard frame.byteCount > 0 else { return }
      let reply: SessionReply
      if let request = SessionRequest(parsing: frame) {
        let sender = SessionRequestHandler.Sender(peer: peer, ticket: ticket) {
          ContinuousClock.now < deadline && !connection.isAbandoned
        }
        reply = requests.answer(request, from: sender)
      } else {
        events.warn("a request that breaks the format was refused", peer)
        reply = requests.refusal
      }
      try connection.send(reply.frame, before: deadline)
      // A program that this process has just started can still have the connection.
      connection.endSending()
    } catch {
      events.warn(
        error == .timedOut
          ? "a connection was closed at its time limit" : "a connection failed (\(error))", peer)
    }
  }
}
