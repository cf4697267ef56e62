internal import ServiceLifecycle

/// Runs an operation that a graceful shutdown cancels without an error; nil in that case.
///
/// An error would cancel the other tasks, which must finish their work.
func unlessShuttingDown<T: Sendable>(
  _ body: @Sendable @escaping () async throws -> T
) async throws -> T? {
  do {
    return try await cancelWhenGracefulShutdown(body)
  } catch  where Task.isShuttingDownGracefully {
    return nil
  }
}
