internal import ServiceLifecycle
internal import UnixSignals

/// Reads certificates and log files again at each SIGHUP.
package final class ReloadService: Service {
  private let operations: ServerOperations
  private let identities: [TLSIdentity]
  private let signals: UnixSignalsSequence

  /// Takes SIGHUP, which from now on does not end the process.
  package init(_ operations: ServerOperations, _ identities: [TLSIdentity]) async {
    self.operations = operations
    self.identities = identities
    signals = await UnixSignalsSequence(trapping: .sighup)
  }

  /// Waits for signals until a graceful shutdown or a cancellation.
  package func run() async throws {
    for await _ in signals.cancelOnGracefulShutdown() { await operations.reload(identities) }
  }
}
