public import GRDB
public import MessagingQueue
internal import Synchronization

/// A delivery that a ``Worker`` handles.
public struct Job: Sendable {
  /// The message, its attempt and its lease.
  public let delivery: Delivery

  private let place: Place
  private let completion: Completion

  /// Where the handler's rows are committed.
  enum Place: Sendable {
    case engine(MessagingEngine)
    /// A test's own, which has no lease.
    case database(any DatabaseWriter)
  }

  init(_ delivery: Delivery, in place: Place, _ completion: Completion) {
    self.delivery = delivery
    self.place = place
    self.completion = completion
  }

  /// Commits the handler's own rows and the acknowledgement of the job together, or neither.
  ///
  ///     try await job.complete { db in
  ///       try db.execute(sql: "INSERT INTO sent (mail) VALUES (?)", arguments: [id])
  ///     }
  ///
  /// Call it as the last step. The handler's return then settles nothing more.
  ///
  /// - Throws: the errors of `MessagingEngine.write(_:)`; `unknownLease` if the lease went to
  ///   another worker, or the handler has already settled the job; `replicated` on a home that is one of several, whose
  ///   leases no transaction reaches: commit the rows with `write`, and let the handler return. Nothing is committed
  ///   then.
  @discardableResult
  public func complete<Value: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws -> Value {
    try await settle(as: .acknowledged, body) { engine, token, db in
      try engine.acknowledge(token, in: db)
    }
  }

  /// Commits the acknowledgement of the job alone.
  public func complete() async throws {
    guard case .engine(let engine) = place, engine.isReplicated else {
      return try await complete { _ in }
    }
    try await settling(as: .acknowledged) { try await engine.acknowledge(delivery.token) }
  }

  /// Commits the handler's own rows and makes a dead letter of the job together, or neither.
  ///
  /// As ``complete(_:)``. Without rows, throw ``JobFailure/reject(reason:)``.
  ///
  /// - Parameter reason: what exceeds 1,024 bytes is cut off.
  @discardableResult
  public func reject<Value: Sendable>(
    reason: String, _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws -> Value {
    let reason = JobResult.reason(reason)
    return try await settle(as: .rejected(reason: reason), body) { engine, token, db in
      try engine.reject(token, reason: reason, in: db)
    }
  }

  private func settle<Value: Sendable>(
    as result: JobResult, _ body: @escaping @Sendable (Database) throws -> Value,
    _ settlement: @escaping @Sendable (MessagingEngine, LeaseToken, Database) throws -> Void
  ) async throws -> Value {
    try await settling(as: result) {
      switch place {
      case .engine(let engine):
        let token = delivery.token
        return try await engine.write { db in
          let value = try body(db)
          try settlement(engine, token, db)
          return value
        }
      case .database(let database): return try await database.write(body)
      }
    }
  }

  private func settling<Value>(
    as result: JobResult, _ body: () async throws -> Value
  ) async throws -> Value {
    try completion.begin()
    do {
      let value = try await body()
      completion.succeed(result)
      return value
    } catch {
      completion.fail()
      throw error
    }
  }

  /// Whether a handler has settled its job by itself.
  final class Completion: Sendable {
    private enum State: Equatable { case open, underWay, done(JobResult) }

    private let state = Mutex(State.open)

    /// The settlement that is committed; nil if there is none.
    var result: JobResult? {
      state.withLock { state in if case .done(let result) = state { result } else { nil } }
    }
    /// Whether the job has no settlement that is committed or under way.
    var isOpen: Bool { state.withLock { $0 == .open } }

    /// - Throws: `unknownLease` if there is another one.
    func begin() throws(EngineError) {
      let isFirst = state.withLock { state in
        guard state == .open else { return false }
        state = .underWay
        return true
      }
      if !isFirst { throw EngineError(.unknownLease, "the handler has already settled this job") }
    }

    func succeed(_ result: JobResult) { state.withLock { $0 = .done(result) } }
    func fail() { state.withLock { $0 = .open } }
  }
}

/// The error by which a handler says what becomes of its job.
///
/// Any other error has the job tried again after the worker's back-off.
public struct JobFailure: Error, Sendable, Hashable {
  enum Wish: Sendable, Hashable {
    case retry(after: Duration?)
    case reject
  }

  let wish: Wish

  /// Why, for the history of a dead letter; stored encrypted.
  public let reason: String

  /// Tries the job again.
  ///
  /// - Parameters:
  ///   - delay: default: nil, the worker's back-off.
  ///   - reason: default: `retried`. What exceeds 1,024 bytes is cut off.
  public static func retry(after delay: Duration? = nil, reason: String = "retried") -> JobFailure {
    JobFailure(wish: .retry(after: delay), reason: reason)
  }

  /// Makes a dead letter of the job: no attempt would succeed.
  ///
  /// - Parameter reason: what exceeds 1,024 bytes is cut off.
  public static func reject(reason: String) -> JobFailure {
    JobFailure(wish: .reject, reason: reason)
  }
}

/// What becomes of a job after its handler.
public enum JobResult: Sendable, Hashable {
  /// The handler returned: the job is done.
  case acknowledged
  /// The job comes again after this delay, or becomes a dead letter if this was its last attempt.
  case retried(after: Duration, reason: String)
  /// The job becomes a dead letter.
  case rejected(reason: String)

  /// The result of an error that a handler threw.
  init(
    _ error: any Error, attempt: Int, _ backoff: Backoff, random: @Sendable () -> Double
  ) {
    switch error {
    case let failure as JobFailure:
      let reason = Self.reason(failure.reason)
      switch failure.wish {
      case .reject: self = .rejected(reason: reason)
      case .retry(let delay):
        let limit = EngineConfiguration.maximumLeaseDuration
        let delay = delay ?? backoff.delay(afterAttempt: attempt, random: random())
        self = .retried(after: min(max(delay, .zero), limit), reason: reason)
      }
    default:
      self = .retried(
        after: backoff.delay(afterAttempt: attempt, random: random()),
        reason: Self.reason(of: error))
    }
  }

  /// The kind of an error: its text can quote the payload.
  private static func reason(of error: any Error) -> String {
    if let error = error as? EngineError { return "EngineError: \(error.code)" }
    return reason("\(type(of: error))")
  }

  /// A text within the limits of a reason: its first scalars, of at most 1,024 bytes together.
  static func reason(_ text: String) -> String {
    if text.isEmpty { return "failed" }
    var byteCount = 0
    let kept = text.unicodeScalars.prefix { scalar in
      byteCount += UTF8.width(scalar)
      return byteCount <= EngineConfiguration.maximumReasonByteCount
    }
    return String(kept)
  }
}
