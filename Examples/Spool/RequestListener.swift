internal import ServiceLifecycle

/// Answers each line of a client once it has been kept, or with a word that says why it was not.
struct RequestListener: Service {
  /// Keeps requests, all or none, and returns their timetokens.
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
    // Cancelled when the engine cannot start: without it there is nothing to listen for.
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

/// Why requests were not kept.
struct Refusal: Error {
  let word: String

  init(_ word: String) {
    self.word = word
  }
}
