internal import AccessControl
package import Logging
internal import SystemPackage

/// One line for each request, at its end: never a path, a query, a key, a token, a payload or a user.
package struct AccessLog: Sendable {
  private enum Sink: Sendable {
    case logger(Logger)
    case lines(LineWriter)
  }

  private let sink: Sink

  /// Writes to a logger, at the level debug.
  package init(_ logger: Logger) { sink = .logger(logger) }

  /// Writes lines of JSON: `docs/reference/server-observation.md` has their members.
  package init(_ writer: LineWriter) { sink = .lines(writer) }

  /// Opens its file again, which a rotation of logs has renamed.
  ///
  /// - Throws: `Errno`; lines then still go to the former file.
  func reopen() async throws(Errno) {
    if case .lines(let writer) = sink { try await writer.reopen() }
  }

  func write(_ record: RequestRecord) {
    switch sink {
    case .logger(let logger):
      logger.debug(
        "request",
        metadata: [
          "route": "\(record.route.rawValue)", "method": "\(record.method)",
          "application": "\(record.application?.description ?? "-")",
          "status": "\(record.status)", "bytesIn": "\(record.receivedByteCount)",
          "bytesOut": "\(record.sentByteCount)", "milliseconds": "\(record.milliseconds)",
          "connection": "\(record.connection)",
        ])
    case .lines(let writer): writer.write(Self.line(record, at: .now))
    }
  }

  /// The line in JSON; none of its texts needs an escape.
  static func line(_ record: RequestRecord, at time: UTCTime) -> String {
    """
    {"time":"\(time)","route":"\(record.route.rawValue)","method":"\(record.method)",\
    "application":\(record.application?.description ?? "null"),"status":\(record.status),\
    "bytesIn":\(record.receivedByteCount),"bytesOut":\(record.sentByteCount),\
    "milliseconds":\(record.milliseconds),"connection":\(record.connection)}
    """
  }
}

extension RequestRecord {
  /// With three digits behind the point at most.
  fileprivate var milliseconds: Double {
    let microseconds =
      time.components.seconds * 1_000_000
      + time.components.attoseconds / 1_000_000_000_000
    return Double(microseconds) / 1000
  }
}
