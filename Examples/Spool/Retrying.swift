internal import Logging
internal import ServiceLifecycle

/// Repeats an operation until it succeeds, as long as its errors are temporary.
///
/// During a graceful shutdown, it throws the error instead of trying again.
func retrying<T>(
  every pause: Duration, _ logger: Logger, _ body: () async throws -> T,
  after passes: (any Error) -> Bool
) async throws -> T {
  while true {
    do {
      return try await body()
    } catch  where passes(error) && !Task.isShuttingDownGracefully {
      logger.warning("\(error)")
      try await Task.sleep(for: pause)
    }
  }
}
