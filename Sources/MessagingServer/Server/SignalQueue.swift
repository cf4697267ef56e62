internal import MessagingQueue
internal import Realtime

/// Sends events that are not stored in the order in which they came, without a wait for their senders.
final class SignalQueue: Sendable {
  /// The most events that wait to be sent; more are dropped.
  private static let maximumWaitingCount = 10_000

  private let realtime: Realtime
  private let waiting: AsyncStream<Message>
  private let continuation: AsyncStream<Message>.Continuation

  init(_ realtime: Realtime) {
    self.realtime = realtime
    (waiting, continuation) = AsyncStream.makeStream(
      bufferingPolicy: .bufferingOldest(Self.maximumWaitingCount))
  }

  /// Takes an event; false if too many wait.
  func send(_ message: Message) -> Bool {
    if case .enqueued = continuation.yield(message) { true } else { false }
  }

  /// Sends events until the task is cancelled.
  func run() async throws(EngineError) {
    for await message in waiting {
      do throws(EngineError) {
        _ = try await realtime.send([message])
      } catch {
        // Too many events wait, or the disk is full: this one is lost, as it can be when a client is away.
        if [.stopped, .vaultLocked].contains(error.code) { throw error }
      }
    }
  }

  /// Takes no more events.
  func finish() { continuation.finish() }
}
