internal import Dispatch
internal import FileLayer
internal import Glibc
internal import Synchronization
internal import SystemPackage
internal import VaultCrypto

/// A process that has the messages of a home open, or waits for an unlock to open them.
///
/// It listens on a socket of the home: `docs/reference/session-socket.md`.
public struct SessionProcess: Sendable, Hashable {
  /// The process's number.
  ///
  /// In a container that this process cannot see into, it is the number there.
  public let processID: Int32

  /// Whether the engine takes work; otherwise it waits for an unlock.
  public let isServing: Bool

  /// Whether it serves without a session: it was opened with a password, or its session has expired.
  ///
  /// The end of a session does not end its work.
  public let isServingWithoutSession: Bool

  /// Since when it serves or waits, as the time since 1970.
  public let since: Duration

  /// The time until the session ends that the process has received by its socket; nil if it holds none.
  public let sessionRemaining: Duration?

  /// The processes of a home that can be reached, in ascending order.
  ///
  /// - Parameter id: the vault whose session is looked for.
  /// - Throws: `foreignFile`, `permissionsTooOpen` for a directory of sockets that another user could have made;
  ///   `unreadable`.
  public static func all(
    _ id: VaultID, in store: any VaultStore
  ) async throws(VaultError) -> [SessionProcess] {
    try await survey(id, in: store).processes
  }

  /// As ``all(_:in:)``, with a sentence for each socket that was refused or did not answer.
  package static func survey(
    _ id: VaultID, in store: any VaultStore, parameters: VaultParameters = VaultParameters()
  ) async throws(VaultError) -> (processes: [SessionProcess], problems: [String]) {
    try await onBlockingThread("datavault.sessions") { () throws(VaultError) in
      let answers = try SessionAnswers(
        to: SessionRequest(.status, id), in: store, parameters: parameters)
      let now = parameters.sinceBoot()
      return (answers.processes(at: now), answers.problems)
    }
  }

  init(_ reply: SessionReply, at now: Duration) {
    processID = reply.processID
    isServing = reply.activity != .waiting
    isServingWithoutSession = reply.activity == .servingWithoutSession
    since = .nanoseconds(reply.since)
    sessionRemaining = reply.deadline > now ? reply.deadline - now : nil
  }
}

/// Connections to the listeners of a home.
///
/// A listener orders the changes of a session by the moment of the connection. A change therefore connects before its
/// first effect, so that no later change is undone by it.
struct SessionListeners: Sendable {
  static let maximumCount = 64

  fileprivate private(set) var path: FilePath = ""
  fileprivate private(set) var connected: [(name: String, socket: UnixSocket)] = []
  fileprivate private(set) var refusals: [(name: String, answer: SessionAnswers.Answer)] = []
  /// Listeners beyond the maximum.
  fileprivate private(set) var leftCount = 0

  /// - Throws: `foreignFile`, `permissionsTooOpen`, `unreadable` for the directory.
  init(of store: any VaultStore) throws(VaultError) {
    guard let path = store.processDirectory, let directory = try RunDirectory.open(path) else {
      return
    }
    self.path = path
    for name in try directory.names() {
      switch Self.connect(to: name, in: directory) {
      case .success(nil): continue
      case .success(let socket?) where connected.count < Self.maximumCount:
        connected.append((name, socket))
      case .success: leftCount += 1
      case .failure(let answer): refusals.append((name, answer))
      }
    }
  }

  /// Connects to a listener and checks whose it is.
  ///
  /// - Returns: nil for a name that is gone, and for a stale socket.
  private static func connect(
    to name: String, in directory: RunDirectory
  ) -> Result<UnixSocket?, SessionAnswers.Answer> {
    switch directory.kind(of: name) {
    case .gone: return .success(nil)
    case .refused(let reason): return .failure(.refused(reason))
    case .socket: break
    }
    do throws(Errno) {
      let socket = try UnixSocket.connect(to: name, in: directory)
      guard let peer = socket.peer else {
        return .failure(.refused("the kernel does not say whose it is"))
      }
      guard directory.accepts(peer.userID) else {
        return .failure(.refused("user \(peer.userID) listens there"))
      }
      return .success(socket)
    } catch {
      switch error {
      case .connectionRefused, .noSuchFileOrDirectory: return .success(nil)
      default: return .failure(.silent("\(error)"))
      }
    }
  }
}

/// What the listeners of a home answer to one request.
struct SessionAnswers: Sendable {
  private(set) var replies: [SessionReply] = []
  /// A sentence for each socket that was refused, and each listener that did not answer.
  private(set) var problems: [String] = []
  /// Whether a listener that passed all checks did not answer.
  private(set) var isIncomplete = false

  /// The processes that have answered, in ascending order.
  func processes(at now: Duration) -> [SessionProcess] {
    replies.map { SessionProcess($0, at: now) }.sorted { $0.processID < $1.processID }
  }

  /// Connects to the listeners of a store, and sends the request to all of them together; blocks up to the time limit.
  ///
  /// - Throws: `foreignFile`, `permissionsTooOpen`, `unreadable` for the directory.
  init(
    to request: borrowing SessionRequest, in store: any VaultStore, parameters: VaultParameters
  ) throws(VaultError) {
    self.init(
      to: request, from: try SessionListeners(of: store), before: .now + parameters.socketTimeLimit)
  }

  /// Sends the request to all listeners together; blocks up to the deadline.
  init(
    to request: borrowing SessionRequest, from listeners: SessionListeners,
    before deadline: ContinuousClock.Instant
  ) {
    let (path, connected) = (listeners.path, listeners.connected)
    let results =
      listeners.refusals + Self.ask(connected, Frame(request), before: deadline)
    for (name, answer) in results.sorted(by: { $0.name < $1.name }) {
      switch answer {
      case .reply(let reply): replies.append(reply)
      case .refused(let reason): problems.append("refusing the socket \(path)/\(name): \(reason)")
      case .silent(let reason):
        isIncomplete = true
        problems.append("the process with the socket \(path)/\(name) does not answer: \(reason)")
      }
    }
    if listeners.leftCount > 0 {
      isIncomplete = true
      problems.append(
        "in \(path) \(connected.count + listeners.leftCount) processes listen, of which \(connected.count) were asked"
      )
    }
  }

  fileprivate enum Answer: Error, Sendable {
    case reply(SessionReply)
    case refused(String)
    case silent(String)
  }

  /// A request's bytes, for several threads.
  private final class Frame: Sendable {
    let bytes: SecretBytes

    init(_ request: borrowing SessionRequest) { bytes = request.frame() }
  }

  /// Asks each listener on a thread of its own, so that no number of silent ones delays another.
  private static func ask(
    _ listeners: [(name: String, socket: UnixSocket)], _ frame: Frame,
    before deadline: ContinuousClock.Instant
  ) -> [(name: String, answer: Answer)] {
    let results = Mutex<[(name: String, answer: Answer)]>([])
    let group = DispatchGroup()
    for (name, socket) in listeners {
      DispatchQueue(label: "datavault.session-question").async(group: group) {
        let answer = ask(frame.bytes, socket, before: deadline)
        results.withLock { $0.append((name, answer)) }
      }
    }
    group.wait()
    return results.withLock { $0 }
  }

  private static func ask(
    _ frame: borrowing SecretBytes, _ socket: UnixSocket, before deadline: ContinuousClock.Instant
  ) -> Answer {
    do throws(Errno) {
      try socket.send(frame, before: deadline)
      socket.endSending()
      let bytes = try socket.receive(maximumByteCount: SessionReply.byteCount, before: deadline)
      guard let reply = SessionReply(parsing: bytes) else {
        return .silent("its reply breaks the format")
      }
      guard let peer = socket.peer, peer.processID > 0 else { return .reply(reply) }
      return .reply(reply.of(peer.processID))
    } catch {
      return .silent("\(error)")
    }
  }
}

extension SessionReply {
  /// The same reply with the number by which this process knows the other.
  fileprivate func of(_ processID: Int32) -> SessionReply {
    SessionReply(
      result, activity, processID: processID, since: since, deadline: deadline,
      retryDelay: retryDelay)
  }
}

extension VaultStore {
  /// Lets the processes of the home end the sessions of a vault whose keys have changed, or that was removed.
  ///
  /// A process that does not answer keeps a session that opens nothing any more.
  func checkSessionsOfProcesses(of id: VaultID, parameters: VaultParameters) {
    _ = try? SessionAnswers(to: SessionRequest(.check, id), in: self, parameters: parameters)
  }
}
