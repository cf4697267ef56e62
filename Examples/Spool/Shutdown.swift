internal import ServiceLifecycle

/// Does something that a graceful shutdown gives up, without an error: nil then.
///
/// An error would cancel the tasks beside this one, which have work to finish.
func unlessShuttingDown<T: Sendable>(
  _ body: @Sendable @escaping () async throws -> T
) async throws -> T? {
  do {
    return try await cancelWhenGracefulShutdown(body)
  } catch  where Task.isShuttingDownGracefully {
    return nil
  }
}
