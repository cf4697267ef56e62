import Testing

@testable import MessagingClient

/// A hostile server, against each part of the client.
///
/// One test at a time: a server that floods takes a processor.
@Suite(.serialized) enum HostileTests {}

/// What a call throws, which must end in bounded time.
///
/// The limit is far above each timeout of a client, for a loaded machine.
func failure<R>(
  sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> R
) async -> MessagingClientError? {
  let start = ContinuousClock.now
  defer {
    let time = ContinuousClock.now - start
    #expect(time < .seconds(120), "the call took \(time)", sourceLocation: sourceLocation)
  }
  do {
    _ = try await body()
  } catch let error as MessagingClientError {
    return error
  } catch {
    Issue.record("another error: \(error)", sourceLocation: sourceLocation)
  }
  return nil
}

extension Transport {
  /// A transport without a handler of challenges.
  static func to(
    _ url: String, _ trust: ServerTrust = .system, _ challenges: ClientChallenges? = nil
  ) throws -> Transport {
    try Transport(url, trust, challenges, connectTime: .seconds(2))
  }

  /// Asks for a path.
  func get(
    _ path: String = "/x", timeout: Duration = .seconds(2), answerByteCount: Int = 1 << 20
  ) async throws -> ClientResponse {
    var request = ClientRequest(target: RequestTarget(path: path))
    request.timeout = timeout
    request.answerByteCount = answerByteCount
    return try await send(request)
  }
}
