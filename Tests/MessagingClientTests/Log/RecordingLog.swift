import Foundation
import Logging
import Synchronization

/// Keeps every line of a client's log, at every level.
final class RecordingLog: Sendable {
  struct Line: Sendable, CustomStringConvertible {
    let level: Logger.Level
    let message: String
    let metadata: [String: String]
    /// All of it, as a handler can print it.
    let description: String

    /// The message, and the values that are of interest.
    func summary(_ names: [String]) -> String {
      let values = names.compactMap { name in metadata[name].map { " \(name)=\($0)" } }
      return "\(level) \(message)" + values.joined()
    }
  }

  private let recorded = Mutex<[Line]>([])

  var lines: [Line] { recorded.withLock { $0 } }

  var logger: Logger {
    var logger = Logger(label: "test") { _ in Handler(log: self) }
    logger.logLevel = .trace
    return logger
  }

  /// The lines from a level up.
  func summaries(
    from level: Logger.Level = .debug, _ names: [String] = ["channel", "scheme", "realm", "code"]
  ) -> [String] {
    lines.filter { $0.level >= level }.map { $0.summary(names) }
  }

  /// The lines in which a text is, in one of the forms in which programs write texts.
  func lines(with secret: String) -> [Line] {
    let data = Data(secret.utf8)
    let unreserved = CharacterSet.alphanumerics
    let forms =
      [
        secret, secret.addingPercentEncoding(withAllowedCharacters: unreserved) ?? secret,
        data.map { String(format: "%02x", $0) }.joined(),
        data.map { String(format: "%02X", $0) }.joined(),
        String("\(Array(data))".dropFirst().dropLast()),
      ]
      // Base64 at each of its three places; the digits at the ends depend on what is beside it.
      + (0..<3).map { place in
        let text = (Data(count: place) + data).base64EncodedString()
        return String(text.filter { $0 != "=" }.dropFirst(place + 1).dropLast(2))
      }
    return lines.filter { line in forms.contains { line.description.contains($0) } }
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
      let all = metadata.merging(event.metadata ?? [:]) { $1 }
      let error = event.error.map { " \($0)" } ?? ""
      log.recorded.withLock {
        $0.append(
          Line(
            level: event.level, message: "\(event.message)",
            metadata: all.mapValues { "\($0)" },
            description: "\(event.level) \(event.message) \(all)\(error)"))
      }
    }
  }
}
