internal import ServiceLifecycle

/// Answers each line of a client when it is stored, or with the reason of the refusal.
struct RequestListener: Service {
  /// Stores all requests or none, and returns their timetokens.
  typealias Keeping = @Sendable ([Request]) async throws(Refusal) -> [String]

  private let maximumPayloadByteCount: Int
  private let keep: Keeping
  private let listener: LineListener

  init(
    path: String, maximumPayloadByteCount: Int, keep: @escaping Keeping
  ) throws(DaemonError) {
    self.maximumPayloadByteCount = maximumPayloadByteCount
    self.keep = keep
    listener = try LineListener(
      path: path, maximumLineByteCount: maximumPayloadByteCount + Request.longestPrefix)
  }

  func run() async throws {
    ServiceManager.notify("READY=1")
    // The service group cancels this service if the engine cannot start.
    await withTaskCancellationOrGracefulShutdownHandler {
      await listener.serve { await answers(to: $0) }
    } onCancelOrGracefulShutdown: {
      ServiceManager.notify("STOPPING=1")
      listener.stop()
    }
  }

  private func answers(to lines: [Line]) async -> [String] {
    var requests = lines.map { Request($0, maximumPayloadByteCount: maximumPayloadByteCount) }
    let accepted = requests.indices.filter { requests[$0].refusal == nil }
    do throws(Refusal) {
      let timetokens = try await keep(accepted.map { requests[$0] })
      for (index, timetoken) in zip(accepted, timetokens) {
        requests[index].timetoken = timetoken
      }
    } catch {
      for index in accepted { requests[index].refusal = error.word }
    }
    return requests.map(\.answer)
  }
}

/// The reason for which requests were not stored.
struct Refusal: Error {
  let word: String

  init(_ word: String) {
    self.word = word
  }
}
