internal import DataVault
internal import FileLayer
package import Logging
internal import Synchronization
package import VaultedDatabase

/// The session socket of one engine, or of a service through all its engines.
///
/// An engine works without it too: what prevents the socket is a warning in the log.
package final class EngineSocket: Sendable {
  private struct Content {
    var listener: SessionListener?
    var isClosed = false
  }

  private let home: DataVaultHome
  private let logger: Logger
  private let content = Mutex(Content())

  package init(_ home: DataVaultHome, _ logger: Logger) {
    self.home = home
    self.logger = logger
  }

  /// Begins to listen, unless the home does not exist yet; a later call does nothing.
  package func open() async {
    guard content.withLock({ $0.listener == nil && !$0.isClosed }) else { return }
    let (home, logger) = (home, logger)
    do throws(VaultError) {
      let listener = try await onBlockingThread("datavault.engine-socket") {
        () throws(VaultError) in
        try SessionListener(for: home.store, parameters: home.vaultParameters) { event in
          logger.log(
            level: event.isWarning ? .warning : .notice, "session socket: \(event.message)")
        }
      }
      let isClosed = content.withLock { content in
        if !content.isClosed { content.listener = listener }
        return content.isClosed
      }
      if isClosed { listener?.close() }
    } catch {
      logger.warning(
        "without a session socket, datavault unlock and status do not reach this process: \(error)")
    }
  }

  /// Says what the process does, for `datavault status` and `lock`.
  ///
  /// - Parameter engine: takes work; nil while the process waits for an unlock.
  package func report(_ engine: MessagingEngine?) {
    content.withLock { $0.listener }?.report(servesInSession: engine?.endsWithSession)
  }

  /// Removes the socket and wipes the session that came through it.
  package func close() {
    let listener = content.withLock { content in
      content.isClosed = true
      return content.listener.take()
    }
    listener?.close()
  }
}
