import Logging
import Synchronization

/// Keeps everything that is logged, at every level.
final class RecordingLog: Sendable {
  private let lines = Mutex<[String]>([])

  var messages: [String] { lines.withLock { $0 } }

  var logger: Logger {
    var logger = Logger(label: "test") { _ in Handler(log: self) }
    logger.logLevel = .trace
    return logger
  }

  private func append(_ line: String) {
    lines.withLock { $0.append(line) }
  }

  private struct Handler: LogHandler {
    let log: RecordingLog
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level = .trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      log.append("\(event.level) \(event.message) \(event.metadata ?? [:])")
    }
  }
}
