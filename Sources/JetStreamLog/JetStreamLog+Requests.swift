internal import CNATS
internal import FileLayer
internal import Logging
package import Replication
internal import StrictJSON
internal import Synchronization

extension JetStreamLog {
  package func request(
    _ bytes: [UInt8], to member: MemberID, within limit: Duration,
    isReply: @escaping @Sendable ([UInt8]) -> Bool
  ) async throws -> [UInt8] {
    try await exchange.request(
      bytes, to: names.requests(to: member), within: limit, isReply: isReply)
  }

  package func serve(
    as member: MemberID,
    _ answer:
      @escaping @Sendable (_ request: [UInt8], _ reply: @escaping @Sendable ([UInt8]) -> Void) ->
      Void
  ) throws {
    exchange.answer(as: names.requests(to: member), answer)
    // A connection that is there is used from its next check on.
    connecting.withLock { $0.checkedAt = nil }
  }
}

/// The requests under way, and how this node answers.
final class RequestReplies: Sendable {
  typealias Answer = @Sendable ([UInt8], @escaping @Sendable ([UInt8]) -> Void) -> Void

  private struct Caller: Sendable {
    let isReply: @Sendable ([UInt8]) -> Bool
    let continuation: CheckedContinuation<[UInt8], any Error>
  }

  private struct State: Sendable {
    var callers: [UInt64: Caller] = [:]
    var nextNumber: UInt64 = 0
    var inbox = ""
    var subscriptions: [BrokerSubscription] = []
    var served: (subject: String, answer: Answer)?
    weak var connection: BrokerConnection?
  }

  private let state = Mutex(State())
  private let sender = RequestSender()

  /// The last token of the subject to which brokers answer an append.
  private static let appended = "r"

  /// The subject for what brokers answer to an append, until the next connection.
  var inboxOfAppends: String { state.withLock { "\($0.inbox).\(Self.appended)" } }

  /// Answers from now on what comes to a subject, over each connection that is made.
  func answer(as subject: String, _ answer: @escaping Answer) {
    state.withLock { $0.served = (subject, answer) }
  }

  /// Subscribes over a new connection.
  ///
  /// - Parameter noteAppended: gets what the brokers answer to appends.
  func attach(
    to connection: BrokerConnection, _ names: ShardNames,
    _ noteAppended: @escaping @Sendable ([UInt8]) -> Void
  ) throws(LogError) {
    let served = state.withLock { $0.served }
    let inbox = names.newInbox()
    let inboxes = names.inboxes
    var subscriptions = [
      try BrokerSubscription(connection, "\(inbox).*") { [weak self] subject, bytes, _ in
        let last = subject.split(separator: ".").last.map(String.init) ?? ""
        if last == Self.appended { return noteAppended(bytes) }
        guard let number = UInt64(last) else { return }
        self?.take(bytes, for: number)
      }
    ]
    if let served {
      subscriptions.append(
        try BrokerSubscription(connection, served.subject) {
          [weak connection, sender] _, bytes, reply in
          // Another subject could be one of the brokers' own, at which the node can do more than its requester.
          guard let reply, reply.hasPrefix("\(inboxes)."), let connection else { return }
          served.answer(bytes) { answer in
            Task { try? await sender.publish(answer, to: reply, over: connection) }
          }
        })
    }
    // The earlier ones end outside the lock.
    let earlier = state.withLock { state in
      defer { state.subscriptions = subscriptions }
      state.inbox = inbox
      state.connection = connection
      return state.subscriptions
    }
    withExtendedLifetime(earlier) {}
  }

  /// Sends a request and waits for the first bytes that are a reply.
  ///
  /// - Throws: `unreachable` without a connection: only the threads of the log connect, which can take seconds.
  func request(
    _ bytes: [UInt8], to subject: String, within limit: Duration,
    isReply: @escaping @Sendable ([UInt8]) -> Bool
  ) async throws -> [UInt8] {
    let (number, inbox, connection) = state.withLock { state in
      state.nextNumber += 1
      return (state.nextNumber, state.inbox, state.connection)
    }
    let deadline = Task {
      try await Task.sleep(for: limit)
      finish(number, .failure(LogError(.noAnswer, "a member has not answered a request")))
    }
    defer { deadline.cancel() }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        state.withLock {
          $0.callers[number] = Caller(isReply: isReply, continuation: continuation)
        }
        if Task.isCancelled { return finish(number, .failure(CancellationError())) }
        Task { [sender] in
          do {
            try await sender.publish(
              bytes, to: subject, reply: "\(inbox).\(number)", over: connection)
          } catch { finish(number, .failure(error)) }
        }
      }
    } onCancel: {
      finish(number, .failure(CancellationError()))
    }
  }

  /// Takes what has come for a request; without bytes, nothing listens for it.
  private func take(_ bytes: [UInt8], for number: UInt64) {
    if bytes.isEmpty {
      return finish(
        number, .failure(LogError(.noAnswer, "a member does not listen for requests")))
    }
    // Outside the lock, because it decrypts.
    guard let caller = state.withLock({ $0.callers[number] }), caller.isReply(bytes) else { return }
    finish(number, .success(bytes))
  }

  private func finish(_ number: UInt64, _ result: Result<[UInt8], any Error>) {
    state.withLock { $0.callers.removeValue(forKey: number) }?.continuation.resume(with: result)
  }

  /// Ends all requests.
  func close() {
    let (callers, subscriptions) = state.withLock { state in
      defer {
        state.callers = [:]
        state.subscriptions = []
        // It can hold keys.
        state.served = nil
      }
      return (state.callers, state.subscriptions)
    }
    for caller in callers.values { caller.continuation.resume(throwing: LogError.closed) }
    withExtendedLifetime(subscriptions) {}
  }
}

/// Publishes requests and replies on a thread of its own, because a broker that takes no bytes blocks it for seconds.
private actor RequestSender: BlockingActor {
  nonisolated let executor = BlockingExecutor(label: "datavault.member-requests")

  func publish(
    _ bytes: [UInt8], to subject: String, reply: String? = nil, over connection: BrokerConnection?
  ) throws(LogError) {
    guard let connection else { throw LogError(.unreachable, "no broker is connected") }
    try connection.publish(bytes, to: subject, reply: reply)
  }
}

extension BrokerConnection {
  /// Publishes without waiting for an answer; it blocks at most for the write deadline.
  ///
  /// A write that fails can have sent a part, after which the broker would take other bytes for the rest. So the
  /// connection is closed then, and the next use makes another.
  func publish(_ bytes: [UInt8], to subject: String, reply: String? = nil) throws(LogError) {
    guard ShardNames.isSafe(subject), reply.map(ShardNames.isSafe) ?? true else {
      throw LogError(.noAnswer, "publishing: a subject has bytes that it must not have")
    }
    let status = unsafe bytes.withUnsafeBytes { bytes in
      let count = Int32(bytes.count)
      guard let reply else {
        return unsafe natsConnection_Publish(handle, subject, bytes.baseAddress, count)
      }
      return unsafe natsConnection_PublishRequest(handle, subject, reply, bytes.baseAddress, count)
    }
    guard status != NATS_OK else { return }
    let error = LogError(status, during: "publishing")
    if ![NATS_INSUFFICIENT_BUFFER, NATS_MAX_PAYLOAD].contains(status) { close() }
    throw error
  }
}

/// Tells the log why brokers do not store records: once a minute for each reason.
final class RefusalLog: Sendable {
  private let logger: Logger
  private let noted = Mutex<[String: ContinuousClock.Instant]>([:])

  init(_ logger: Logger) { self.logger = logger }

  /// Takes what a broker has answered to an append.
  ///
  /// It is no evidence: only what is read back counts.
  func note(_ answer: [UInt8]) {
    guard let members = try? JSONReader.object(answer, maximumDepth: 4),
      let error = members["error"]
    else { return }
    let reason = error.member("description")?.string?.printable ?? "no reason"
    let isNew = noted.withLock { noted in
      noted = noted.filter { ContinuousClock.now - $0.value < .seconds(60) }
      guard noted[reason] == nil, noted.count < 16 else { return false }
      noted[reason] = .now
      return true
    }
    if isNew { logger.warning("the brokers refuse records: \(reason)") }
  }
}

/// A subscription whose messages come on a thread of libnats.
@safe final class BrokerSubscription: @unchecked Sendable {
  /// Gets the subject, the bytes and the subject of the reply.
  typealias Handler = @Sendable (String, [UInt8], String?) -> Void

  private final class Box: Sendable {
    let handler: Handler
    init(_ handler: @escaping Handler) { self.handler = handler }
  }

  private let handle: OpaquePointer
  private let connection: BrokerConnection

  init(
    _ connection: BrokerConnection, _ subject: String, _ handler: @escaping Handler
  ) throws(LogError) {
    self.connection = connection
    let box = unsafe Unmanaged.passRetained(Box(handler))
    var handle: OpaquePointer?
    let status = unsafe natsConnection_Subscribe(
      &handle, connection.handle, subject, receive, box.toOpaque())
    guard status == NATS_OK, let handle = unsafe handle else {
      unsafe box.release()
      throw LogError(status, during: "listening for requests")
    }
    unsafe self.handle = unsafe handle
    unsafe connection.keep(handle)
    // Called once, after the last message.
    _ = unsafe natsSubscription_SetOnCompleteCB(
      handle,
      { closure in
        if let closure = unsafe closure { unsafe Unmanaged<Box>.fromOpaque(closure).release() }
      },
      box.toOpaque())
  }

  deinit { _ = unsafe natsSubscription_Unsubscribe(handle) }

  fileprivate static func deliver(_ message: OpaquePointer?, _ closure: UnsafeMutableRawPointer?) {
    defer { unsafe natsMsg_Destroy(message) }
    guard let closure = unsafe closure, let message = unsafe message else { return }
    let box = unsafe Unmanaged<Box>.fromOpaque(closure).takeUnretainedValue()
    let count = Int(unsafe natsMsg_GetDataLength(message))
    guard count <= 1 << 20, let subject = unsafe natsMsg_GetSubject(message) else { return }
    let bytes =
      unsafe natsMsg_GetData(message).map {
        unsafe [UInt8](UnsafeRawBufferPointer(start: $0, count: count))
      } ?? []
    let reply = unsafe natsMsg_GetReply(message).map { unsafe String(cString: $0) }
    box.handler(unsafe String(cString: subject), bytes, reply)
  }
}

private let receive: natsMsgHandler = { _, _, message, closure in
  unsafe BrokerSubscription.deliver(message, closure)
}
