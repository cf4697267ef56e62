internal import NIOHTTP1

/// How a publication is repeated without doubling it: docs/reference/deduplication.md.
enum Deduplication {
  /// The header with the id of a publication, in all protocols.
  static let idHeader = "datavault-deduplication-id"
  /// The header by which a server says that it knows ids, with the seconds for which it knows them.
  static let windowHeader = "datavault-deduplication-window"

  /// How often a publication is repeated after lost answers.
  private static let maximumRepetitionCount = 5

  /// A new id: 128 random bits, which no one can guess.
  static func makeID() -> String {
    var generator = SystemRandomNumberGenerator()
    return (0..<2).map { _ in
      let digits = String(generator.next(), radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }

  /// Publishes, and repeats what has no known outcome if the server knows the ids of publications.
  ///
  /// - Throws: `outcomeUnknown` if the outcome stays unknown; the errors of a first attempt that changed nothing.
  static func publish<Result>(
    _ backoff: Backoff, _ transport: Transport,
    _ attempt: () async throws(MessagingClientError) -> Result
  ) async throws(MessagingClientError) -> Result {
    var unknown: MessagingClientError?
    let start = ContinuousClock.now
    for repetitionCount in 0...maximumRepetitionCount {
      if let unknown, repetitionCount > 0 {
        guard await canRepeat(repetitionCount, since: start, backoff, transport) else {
          throw unknown
        }
      }
      do throws(MessagingClientError) {
        return try await attempt()
      } catch {
        // A refusal of a repetition says nothing of the first attempt.
        guard unknown != nil || error.code == .outcomeUnknown else { throw error }
        if error.code == .outcomeUnknown { transport.log.outcomeUnknown() }
        unknown = unknown ?? error
      }
    }
    throw unknown
      ?? MessagingClientError(.outcomeUnknown, "the outcome of a publication is not known")
  }

  /// Waits, and asks the server whether it still knows the id of a publication; our server answers that while it is
  /// locked.
  private static func canRepeat(
    _ repetitionCount: Int, since start: ContinuousClock.Instant, _ backoff: Backoff,
    _ transport: Transport
  ) async -> Bool {
    for count in repetitionCount...maximumRepetitionCount {
      var generator = SystemRandomNumberGenerator()
      guard
        (try? await Task.sleep(for: backoff.wait(afterFailures: count, &generator))) != nil
      else { return false }
      let request = ClientRequest(target: RequestTarget(["time", "0"]))
      if let response = try? await transport.send(request) {
        let window = response.headers.first(name: windowHeader).flatMap { UInt32($0) } ?? 0
        // Half of the window, because the attempt takes its time too.
        return ContinuousClock.now - start < .seconds(window) / 2
      }
    }
    return false
  }
}
