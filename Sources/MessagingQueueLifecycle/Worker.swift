internal import Foundation
public import GRDB
public import MessagingQueue

/// A channel, and the handler of its messages.
///
///     let mails = Worker(mailChannel, concurrency: 4) { job in
///       let mail = try job.delivery.decode(Mail.self)
///       try await send(mail)
///     }
///
/// A handler that returns acknowledges its job. One that throws ``JobFailure`` says what becomes of
/// it; any other error has it tried again. Delivery is at least once: a handler whose process is
/// killed runs again. Make its work safe to repeat, or commit it with ``Job/complete(_:)``.
public struct Worker: Sendable {
  /// The channel to receive from.
  public let channel: Channel

  /// The consumer whose messages these are.
  public let consumer: Consumer

  /// The most jobs of this channel at a time; nil for no limit but that of the service.
  public let concurrency: Int?

  let attempts: Attempts
  let handler: @Sendable (Job) async throws -> Void

  /// The limit of attempts of a worker.
  enum Attempts: Sendable {
    case configured
    case limit(Int?)
  }

  /// Makes a worker with the service's limit of attempts.
  ///
  /// - Parameters:
  ///   - consumer: default: `default`.
  ///   - concurrency: at least 1. Default: nil, no limit but that of the service.
  ///   - handler: runs on the cooperative pool, so it must not block. Its task is cancelled when its
  ///     lease is lost, the vault is locked, or a shutdown takes too long.
  public init(
    _ channel: Channel, for consumer: Consumer = .default, concurrency: Int? = nil,
    handler: @escaping @Sendable (Job) async throws -> Void
  ) {
    self.init(channel, consumer, concurrency, .configured, handler)
  }

  /// Makes a worker with a limit of attempts of its own; nil for none.
  public init(
    _ channel: Channel, for consumer: Consumer = .default, concurrency: Int? = nil,
    maximumAttempts: Int?, handler: @escaping @Sendable (Job) async throws -> Void
  ) {
    self.init(channel, consumer, concurrency, .limit(maximumAttempts), handler)
  }

  private init(
    _ channel: Channel, _ consumer: Consumer, _ concurrency: Int?, _ attempts: Attempts,
    _ handler: @escaping @Sendable (Job) async throws -> Void
  ) {
    precondition(concurrency ?? 1 > 0, "a worker needs a concurrency of at least 1")
    self.channel = channel
    self.consumer = consumer
    self.concurrency = concurrency
    self.attempts = attempts
    self.handler = handler
  }

  /// Runs the handler on a message as a test gives it, without an engine, a disk or a clock.
  ///
  /// - Parameters:
  ///   - attempt: the number of the attempt. Default: 1.
  ///   - backoff: default: the default one; its jitter is left out, so that the delay is known.
  ///   - database: where the handler's rows are committed. Default: an empty database in memory.
  /// - Returns: what would become of the job.
  public func `try`(
    _ message: Message, attempt: Int = 1, backoff: Backoff = Backoff(),
    database: (any DatabaseWriter)? = nil
  ) async throws -> JobResult {
    let limit: Int? =
      switch attempts {
      case .configured: WorkerConfiguration.defaultMaximumAttempts
      case .limit(let limit): limit
      }
    let delivery = Delivery(
      of: message, at: Timetoken(Date(timeIntervalSince1970: 0)), attempt: attempt,
      maximumAttempts: limit)
    let completion = Job.Completion()
    let job = Job(delivery, in: .database(try database ?? DatabaseQueue()), completion)
    do {
      try await handler(job)
      return completion.result ?? .acknowledged
    } catch {
      return completion.result ?? JobResult(error, attempt: attempt, backoff) { 0 }
    }
  }

  /// Runs the handler on content for the worker's channel; see ``try(_:attempt:backoff:database:)``.
  public func `try`(_ content: Content, attempt: Int = 1) async throws -> JobResult {
    try await self.try(Message(channel: channel, content), attempt: attempt)
  }
}
