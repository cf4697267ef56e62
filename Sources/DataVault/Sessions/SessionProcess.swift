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
      let processes = answers.replies.map { reply in
        SessionProcess(
          processID: reply.processID, isServing: reply.isServing, since: .nanoseconds(reply.since),
          sessionRemaining: reply.deadline > now ? reply.deadline - now : nil)
      }
      return (processes.sorted { $0.processID < $1.processID }, answers.problems)
    }
  }
}

/// What the listeners of a home answer to one request.
struct SessionAnswers: Sendable {
  static let maximumListenerCount = 64

  private(set) var replies: [SessionReply] = []
  /// A sentence for each socket that was refused, and each listener that did not answer.
  private(set) var problems: [String] = []
  /// Whether a listener that passed all checks did not answer.
  private(set) var isIncomplete = false

  /// Sends the request to each listener, to all of them together; blocks up to the time limit.
  ///
  /// - Throws: `foreignFile`, `permissionsTooOpen`, `unreadable` for the directory.
  init(
    to request: borrowing SessionRequest, in store: any VaultStore, parameters: VaultParameters
  ) throws(VaultError) {
    guard let path = store.processDirectory, let directory = try RunDirectory.open(path) else {
      return
    }
    var sockets: [String] = []
    var results: [(name: String, answer: Answer)] = []
    for name in try directory.names() {
      if let answer = Answer(refusing: name, in: directory) {
        results.append((name, answer))
      } else {
        sockets.append(name)
      }
    }
    results += Self.ask(
      sockets.prefix(Self.maximumListenerCount), in: directory, Frame(request),
      before: .now + parameters.socketTimeLimit)
    for (name, answer) in results.sorted(by: { $0.name < $1.name }) {
      switch answer {
      case .reply(let reply): replies.append(reply)
      case .stale: continue
      case .refused(let reason): problems.append("refusing the socket \(path)/\(name): \(reason)")
      case .silent(let reason):
        isIncomplete = true
        problems.append("the process with the socket \(path)/\(name) does not answer: \(reason)")
      }
    }
    if sockets.count > Self.maximumListenerCount {
      isIncomplete = true
      problems.append(
        "\(path) has \(sockets.count) sockets, of which \(Self.maximumListenerCount) were asked")
    }
  }

  private enum Answer: Sendable {
    case reply(SessionReply)
    case stale
    case refused(String)
    case silent(String)

    /// - Returns: nil for a socket that can be asked.
    init?(refusing name: String, in directory: RunDirectory) {
      guard let reason = directory.refusal(of: name) else { return nil }
      self = reason == "\(Errno.noSuchFileOrDirectory)" ? .stale : .refused(reason)
    }
  }

  /// A request's bytes, for several threads.
  private final class Frame: Sendable {
    let bytes: SecretBytes

    init(_ request: borrowing SessionRequest) { bytes = request.frame() }
  }

  /// Asks each listener on a thread of its own, so that no number of silent ones delays another.
  private static func ask(
    _ names: ArraySlice<String>, in directory: RunDirectory, _ frame: Frame,
    before deadline: ContinuousClock.Instant
  ) -> [(name: String, answer: Answer)] {
    let results = Mutex<[(name: String, answer: Answer)]>([])
    let group = DispatchGroup()
    for name in names {
      DispatchQueue(label: "datavault.session-question").async(group: group) {
        let answer = ask(frame.bytes, name, directory, before: deadline)
        results.withLock { $0.append((name, answer)) }
      }
    }
    group.wait()
    return results.withLock { $0 }
  }

  private static func ask(
    _ frame: borrowing SecretBytes, _ name: String, _ directory: RunDirectory,
    before deadline: ContinuousClock.Instant
  ) -> Answer {
    do throws(Errno) {
      let socket = try UnixSocket.connect(to: name, in: directory)
      guard let peer = socket.peer else { return .refused("the kernel does not say whose it is") }
      guard directory.accepts(peer.userID) else {
        return .refused("user \(peer.userID) listens there")
      }
      try socket.send(frame, before: deadline)
      socket.endSending()
      let bytes = try socket.receive(maximumByteCount: SessionReply.byteCount, before: deadline)
      guard let reply = SessionReply(parsing: bytes) else {
        return .silent("its reply breaks the format")
      }
      return .reply(peer.processID > 0 ? reply.of(peer.processID) : reply)
    } catch {
      switch error {
      case .connectionRefused, .noSuchFileOrDirectory: return .stale
      default: return .silent("\(error)")
      }
    }
  }
}

extension SessionReply {
  /// The same reply with the number by which this process knows the other.
  fileprivate func of(_ processID: Int32) -> SessionReply {
    SessionReply(
      result, isServing: isServing, processID: processID, since: since, deadline: deadline,
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
