internal import CNATS
package import Replication
internal import Synchronization

extension JetStreamLog {
  package func request(
    _ bytes: [UInt8], to member: MemberID, within limit: Duration
  ) async throws -> [UInt8] {
    // Only the threads of the log connect: that can take seconds.
    guard let connection = connecting.withLockIfAvailable({ $0.connection }) ?? nil else {
      throw LogError(.unreachable, "no broker is connected")
    }
    return try await exchange.request(
      bytes, to: names.requests(to: member), over: connection, within: limit)
  }

  package func serve(
    as member: MemberID,
    _ answer:
      @escaping @Sendable (_ request: [UInt8], _ reply: @escaping @Sendable ([UInt8]) -> Void) ->
      Void
  ) throws {
    exchange.answer(as: names.requests(to: member), answer)
    if let connection = connecting.withLock({ $0.connection }) {
      try exchange.attach(to: connection, names)
    }
  }
}

/// The requests under way, and how this node answers.
final class RequestReplies: Sendable {
  typealias Answer = @Sendable ([UInt8], @escaping @Sendable ([UInt8]) -> Void) -> Void

  private struct State: Sendable {
    var callers: [UInt64: CheckedContinuation<[UInt8], any Error>] = [:]
    var nextNumber: UInt64 = 0
    var inbox = ""
    var subscriptions: [BrokerSubscription] = []
    var served: (subject: String, answer: Answer)?
    weak var connection: BrokerConnection?
  }

  private let state = Mutex(State())

  /// Answers from now on what comes to a subject, over each connection that is made.
  func answer(as subject: String, _ answer: @escaping Answer) {
    state.withLock { $0.served = (subject, answer) }
  }

  /// Subscribes over a new connection.
  func attach(to connection: BrokerConnection, _ names: ShardNames) throws(LogError) {
    let served = state.withLock { $0.served }
    var inbox: UnsafeMutablePointer<CChar>?
    try check(unsafe natsInbox_Create(&inbox), "preparing requests")
    defer { unsafe natsInbox_Destroy(inbox) }
    let prefix = unsafe inbox.map { unsafe String(cString: $0) } ?? ""
    var subscriptions = [
      try BrokerSubscription(connection, "\(prefix).*") { [weak self] subject, bytes, _ in
        guard let number = subject.split(separator: ".").last.flatMap({ UInt64($0) }) else {
          return
        }
        // Without bytes nothing listens.
        self?.finish(
          number,
          bytes.isEmpty
            ? .failure(LogError(.noAnswer, "a member does not listen for requests"))
            : .success(bytes))
      }
    ]
    if let served {
      subscriptions.append(
        try BrokerSubscription(connection, served.subject) { [weak connection] _, bytes, reply in
          guard let reply, ShardNames.isSafe(reply) else { return }
          served.answer(bytes) { [weak connection] answer in
            connection?.publish(answer, to: reply)
          }
        })
    }
    state.withLock { state in
      state.inbox = prefix
      state.connection = connection
      state.subscriptions = subscriptions
    }
  }

  /// Sends a request and waits for the first reply.
  func request(
    _ bytes: [UInt8], to subject: String, over connection: BrokerConnection, within limit: Duration
  ) async throws -> [UInt8] {
    let (number, inbox) = state.withLock { state in
      state.nextNumber += 1
      return (state.nextNumber, state.inbox)
    }
    let deadline = Task {
      try await Task.sleep(for: limit)
      finish(number, .failure(LogError(.noAnswer, "a member has not answered a request")))
    }
    defer { deadline.cancel() }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { caller in
        state.withLock { $0.callers[number] = caller }
        if Task.isCancelled { return finish(number, .failure(CancellationError())) }
        if !connection.publish(bytes, to: subject, reply: "\(inbox).\(number)") {
          finish(number, .failure(LogError(.noAnswer, "a request could not be sent")))
        }
      }
    } onCancel: {
      finish(number, .failure(CancellationError()))
    }
  }

  private func finish(_ number: UInt64, _ result: Result<[UInt8], any Error>) {
    state.withLock { $0.callers.removeValue(forKey: number) }?.resume(with: result)
  }

  /// Ends all requests.
  func close() {
    let (callers, subscriptions) = state.withLock { state in
      defer {
        state.callers = [:]
        state.subscriptions = []
      }
      return (state.callers, state.subscriptions)
    }
    for caller in callers.values { caller.resume(throwing: LogError.closed) }
    withExtendedLifetime(subscriptions) {}
  }
}

extension BrokerConnection {
  /// Publishes without waiting; false if that failed here.
  @discardableResult
  func publish(_ bytes: [UInt8], to subject: String, reply: String? = nil) -> Bool {
    guard ShardNames.isSafe(subject) else { return false }
    let status = unsafe bytes.withUnsafeBytes { bytes in
      let count = Int32(bytes.count)
      guard let reply else {
        return unsafe natsConnection_Publish(handle, subject, bytes.baseAddress, count)
      }
      return unsafe natsConnection_PublishRequest(handle, subject, reply, bytes.baseAddress, count)
    }
    return status == NATS_OK
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
    // Called once, after the last message.
    _ = unsafe natsSubscription_SetOnCompleteCB(
      handle,
      { closure in
        if let closure = unsafe closure { unsafe Unmanaged<Box>.fromOpaque(closure).release() }
      },
      box.toOpaque())
  }

  deinit { unsafe natsSubscription_Destroy(handle) }

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
