package import Logging
internal import StrictJSON

/// How the lines of the log look.
package enum LogFormat: String, Sendable, CaseIterable {
  /// `2026-01-31T08:00:00.000Z notice datavault.server: the message key=value`
  case text
  /// As `text`, with the priority that journald reads instead of the time: sd-daemon(3).
  case journal
  /// One JSON object: `time`, `level`, `logger`, `message`, and the metadata.
  case json
}

/// Writes the log through a ``LineWriter``.
package struct LineLogHandler: LogHandler {
  package var metadata: Logger.Metadata = [:]
  package var logLevel: Logger.Level
  private let label: String
  private let format: LogFormat
  private let writer: LineWriter
  private let now: @Sendable () -> UTCTime

  /// - Parameter logLevel: default: info.
  package init(
    _ label: String, _ format: LogFormat, logLevel: Logger.Level = .info, to writer: LineWriter
  ) {
    self.init(label, format, logLevel: logLevel, to: writer, now: { .now })
  }

  init(
    _ label: String, _ format: LogFormat, logLevel: Logger.Level, to writer: LineWriter,
    now: @escaping @Sendable () -> UTCTime
  ) {
    self.label = label
    self.format = format
    self.logLevel = logLevel
    self.writer = writer
    self.now = now
  }

  /// A value that every line has.
  package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  /// Writes a line.
  package func log(event: LogEvent) {
    let values = metadata.merging(event.metadata ?? [:]) { $1 }.sorted { $0.key < $1.key }
    switch format {
    case .text, .journal:
      let head =
        format == .journal ? "<\(event.level.priority)>" : "\(now().description) \(event.level) "
      let tail = values.map { " \($0.key)=\(Self.word("\($0.value)"))" }.joined()
      writer.write("\(head)\(label): \(Self.line("\(event.message)"))\(tail)")
    case .json:
      let fixed: [(String, String)] = [
        ("time", now().description), ("level", "\(event.level)"), ("logger", label),
        ("message", "\(event.message)"),
      ]
      let members = fixed + values.map { ($0.key, "\($0.value)") }
      writer.write(
        JSONValue.object(members.map { JSONMember($0.0, .string($0.1)) }).text)
    }
  }

  /// A value as one word: in quotation marks if it has spaces.
  private static func word(_ text: String) -> String {
    let text = line(text)
    guard text.isEmpty || text.contains(where: { $0 == " " || $0 == "\"" || $0 == "=" }) else {
      return text
    }
    return "\"\(text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\""
  }

  /// A text without control characters, so that no value begins a line of its own.
  private static func line(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
      return text
    }
    return String(
      String.UnicodeScalarView(
        text.unicodeScalars.map { $0.properties.generalCategory == .control ? "\u{FFFD}" : $0 }))
  }
}

extension Logger.Level {
  /// syslog(3)'s number.
  fileprivate var priority: Int {
    switch self {
    case .trace, .debug: 7
    case .info: 6
    case .notice: 5
    case .warning: 4
    case .error: 3
    case .critical: 2
    }
  }
}
