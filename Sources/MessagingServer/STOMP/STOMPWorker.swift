internal import ApplicationStore
internal import MessagingQueue
internal import Synchronization

/// Does the operations of one connection in their order, also those that were read before the connection was lost.
///
/// Neighbours that publish, or acknowledge, share a commit. There is a task only while there is work.
final class STOMPWorker: Sendable {
  /// Operations that the client's receipts, if it asks for them, report after the commit.
  struct Job: Sendable {
    var operations: [STOMPOperation]
    /// The engine's messages of the publications.
    var messages: [Message]
    var receipts: [String]

    fileprivate enum Kind: Equatable {
      case publication
      case settlement(STOMPSettlement.Kind)
      case transaction
    }

    fileprivate let kind: Kind

    init(_ operations: [STOMPOperation], _ messages: [Message], receipt: String?) {
      self.operations = operations
      self.messages = messages
      receipts = receipt.map { [$0] } ?? []
      kind =
        switch operations.first {
        case .publish where operations.count == 1: .publication
        case .settle(let settlement) where operations.count == 1: .settlement(settlement.kind)
        default: .transaction
        }
    }

    fileprivate var tokens: [LeaseToken] { tokens { _ in true } }

    fileprivate func tokens(_ isIncluded: (STOMPSettlement.Kind) -> Bool) -> [LeaseToken] {
      operations.flatMap { operation -> [LeaseToken] in
        guard case .settle(let settlement) = operation, isIncluded(settlement.kind) else {
          return []
        }
        return settlement.tokens
      }
    }

    var byteCount: Int { messages.reduce(0) { $0 + $1.payload.count } }

    /// Takes the next job into the same commit, if both are of one kind.
    fileprivate mutating func merge(_ next: Job) -> Bool {
      guard kind == next.kind, kind != .transaction,
        operations.count + next.operations.count <= STOMPWorker.commitCount,
        byteCount + next.byteCount <= STOMPWorker.commitByteCount
      else { return false }
      operations += next.operations
      messages += next.messages
      receipts += next.receipts
      return true
    }
  }

  enum Work: Sendable {
    case job(Job)
    /// Looks whether a consumer exists before a subscription begins.
    case open(Int, Channel, Consumer, canAdd: Bool, receipt: String?)
    case tell(@Sendable (STOMPConnection) -> Void)
    case release([LeaseToken], countsAttempt: Bool)
  }

  /// The most operations of one commit, and the most that wait before the client is no longer read.
  private static let commitCount = 64
  private static let commitByteCount = 256 << 10
  private static let waitingCount = 256
  private static let waitingByteCount = 1 << 20
  /// How long an operation waits for its admission.
  private static let admissionTime = Duration.seconds(10)

  private struct State {
    var waiting: [Work] = []
    var byteCount = 0
    var isRunning = false
  }

  private let home: OpenHome
  private let application: DirectoryEntry
  private let handle: SessionHandle<STOMPConnection>
  private let executor: EventLoopExecutor
  private let state = Mutex(State())

  init(
    _ home: OpenHome, _ application: DirectoryEntry, _ handle: SessionHandle<STOMPConnection>,
    _ executor: EventLoopExecutor
  ) {
    self.home = home
    self.application = application
    self.handle = handle
    self.executor = executor
  }

  /// Whether so much waits that the client must not be read.
  var isFull: Bool {
    state.withLock {
      $0.waiting.count >= Self.waitingCount || $0.byteCount >= Self.waitingByteCount
    }
  }

  /// The bytes of the messages that wait.
  var byteCount: Int { state.withLock { $0.byteCount } }

  func append(_ work: Work) {
    let starts = state.withLock { state in
      state.waiting.append(work)
      if case .job(let job) = work { state.byteCount += job.byteCount }
      defer { state.isRunning = true }
      return !state.isRunning
    }
    if starts { Task(executorPreference: executor) { await self.run() } }
  }

  private func run() async {
    while let work = next() {
      do {
        try await perform(work)
      } catch {
        // What came behind what failed is not done, but leases go back.
        let dropped = state.withLock { state in
          defer {
            state.waiting.removeAll { if case .release = $0 { false } else { true } }
            state.byteCount = 0
          }
          return [work] + state.waiting
        }
        let ending = error as? STOMPEnding ?? .failed
        handle.tell { $0.end(ending) }
        let tokens = dropped.flatMap { work in
          if case .job(let job) = work { job.tokens } else { [LeaseToken]() }
        }
        await home.leases.release(tokens, countsAttempt: true)
      }
    }
  }

  private func next() -> Work? {
    state.withLock { state in
      guard let first = state.waiting.first else {
        state.isRunning = false
        return nil
      }
      var count = 1
      defer { state.waiting.removeFirst(count) }
      guard case .job(var job) = first else { return first }
      while count < state.waiting.count, case .job(let next) = state.waiting[count], job.merge(next)
      {
        count += 1
      }
      state.byteCount -= job.byteCount
      return .job(job)
    }
  }

  private func perform(_ work: Work) async throws {
    switch work {
    case .job(let job):
      try await perform(job)
      handle.tell { $0.didPerform(job) }
    case .open(let number, let channel, let consumer, let canAdd, let receipt):
      if !canAdd, consumer != .default,
        try await !home.engine.hasConsumer(consumer, of: channel)
      {
        var ending = STOMPEnding.forbidden(
          "nothing gives this caller manage, which a new consumer needs")
        ending.receipt = receipt
        throw ending
      }
      handle.tell { $0.didOpen(number, channel, consumer) }
    case .tell(let body): handle.tell(body)
    case .release(let tokens, let countsAttempt):
      await home.leases.release(tokens, countsAttempt: countsAttempt)
    }
  }

  private func perform(_ job: Job) async throws {
    do {
      switch job.kind {
      case .publication:
        try await admitted { _ = try await home.publish(job.messages, of: application) }
      case .settlement(.acknowledge): try await home.engine.acknowledge(job.tokens)
      case .settlement(.release): try await home.engine.release(job.tokens)
      case .settlement(.reject):
        try await home.engine.reject(job.tokens, reason: LeaseSettlements.rejectionReason)
      case .transaction:
        let leases = LeaseSettlements(
          acknowledged: job.tokens { $0 == .acknowledge },
          released: job.tokens { $0 == .release }, rejected: job.tokens { $0 == .reject })
        try await admitted {
          _ = try await home.publish(job.messages, settling: leases, of: application)
        }
      }
      home.leases.forget(job.tokens)
    } catch {
      throw STOMPEnding(error, receipt: job.receipts.first)
    }
  }

  /// Waits while too much is before the commit queue: the client is not read in that time.
  private func admitted(_ body: () async throws -> Void) async throws {
    let deadline = ContinuousClock.now + Self.admissionTime
    while true {
      do {
        return try await body()
      } catch PublishingRefusal.busy where ContinuousClock.now < deadline {
        try await Task.sleep(for: .milliseconds(10))
      }
    }
  }
}

extension STOMPEnding {
  /// Why an operation failed, for its client.
  fileprivate init(_ error: any Error, receipt: String?) {
    switch error {
    case let refusal as PublishingRefusal:
      self.init(message: refusal.message, status: refusal.status)
    case let error as EngineError where error.code == .unknownLease:
      self.init(message: "a lease has ended: the message is delivered again", status: 409)
    case let error as EngineError where error.code == .payloadTooLarge:
      self.init(message: "the message is too large", status: 413)
    case let error as EngineError where [.stopped, .vaultLocked].contains(error.code):
      self = .sealed
    case let error as EngineError where error.code == .outcomeUnknown:
      self.init(message: "it is not known whether this was done: send it again", status: 503)
    default: self = .failed
    }
    self.receipt = receipt
  }
}
