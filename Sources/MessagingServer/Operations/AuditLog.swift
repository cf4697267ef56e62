internal import AccessControl
internal import Logging
internal import NIOCore
internal import Synchronization

/// One line for each act of administration, whatever the level of the log.
///
/// A call that was refused is no act: ``AccessLog`` and the metrics count it. The lines name an application by its
/// number, and never a channel, a user, a key or a token.
final class AuditLog: Sendable {
  /// What was done.
  enum Act: String, Sendable, CaseIterable {
    case start, stop, unlock, lock
    /// The certificate was read again.
    case reloadCertificate = "reload-certificate"
    /// The file of the access log was opened again; written only if that failed.
    case reopenLog = "reopen-log"
    /// Grants of version 2 were made or removed.
    case grant
    case grantToken = "grant-token"
    case revokeToken = "revoke-token"
    /// Channels were added to a group or removed from it.
    case changeGroup = "change-group"
    case removeGroup = "remove-group"
    /// Access or groups that another process has changed are in use.
    case takeChanges = "take-changes"
  }

  /// How many lines an application gets for one kind of change of groups, which everyone can make in an open one.
  ///
  /// Default: 1 each second, and 100 after a pause.
  private static let limits = {
    var limits = RequestRate.Limits()
    limits.requestsPerSecond = 1
    limits.burstCount = 100
    return limits
  }()

  private struct Subject: Hashable {
    let act: Act
    let application: ApplicationID?
  }

  private struct Lines {
    var rate = RequestRate(AuditLog.limits)
    var omittedCount = 0
  }

  private let logger: Logger
  private let lines = Mutex<[Subject: Lines]>([:])

  init(_ logger: Logger) {
    var logger = logger
    logger.logLevel = min(logger.logLevel, .notice)
    self.logger = logger
  }

  /// Writes an act of the server or its operator.
  ///
  /// - Parameter error: why it failed.
  func write(_ act: Act, error: (any Error)? = nil, count: Int? = nil) {
    var metadata: Logger.Metadata = [
      "act": "\(act.rawValue)", "outcome": error == nil ? "done" : "failed",
    ]
    if let error { metadata["error"] = "\(error)" }
    if let count { metadata["count"] = "\(count)" }
    logger.notice("audit", metadata: metadata)
  }

  /// Writes the act of a request, if it was one.
  func write(_ record: RequestRecord, at now: NIODeadline = .now()) {
    guard let act = record.route.act, record.status < 400 || record.isUncertain,
      let omittedCount = omittedCount(act, record.application, now)
    else { return }
    var metadata: Logger.Metadata = [
      "act": "\(act.rawValue)", "outcome": record.status < 400 ? "done" : "unknown",
      "application": "\(record.application?.description ?? "-")",
      "status": "\(record.status)", "connection": "\(record.connection)",
    ]
    if omittedCount > 0 { metadata["omitted"] = "\(omittedCount)" }
    logger.notice("audit", metadata: metadata)
  }

  /// How many acts of the same kind have no line since the last one; nil if this one has none either.
  private func omittedCount(
    _ act: Act, _ application: ApplicationID?, _ now: NIODeadline
  ) -> Int? {
    guard act == .changeGroup || act == .removeGroup else { return 0 }
    let subject = Subject(act: act, application: application)
    return lines.withLock { all in
      var lines = all[subject] ?? Lines()
      let isWritten = lines.rate.take(atNanoseconds: now.uptimeNanoseconds)
      let count = lines.omittedCount
      lines.omittedCount = isWritten ? 0 : count + 1
      all[subject] = lines
      return isWritten ? count : nil
    }
  }
}

extension RequestRecord {
  /// Whether a call without a good answer can be durable: its client left, or the server failed.
  fileprivate var isUncertain: Bool { status == Self.abandoned || status == 500 }
}

extension Route {
  /// The act of administration that an answered request is; nil if it is none.
  fileprivate var act: AuditLog.Act? {
    switch self {
    case .grant: .grant
    case .grantToken: .grantToken
    case .revokeToken: .revokeToken
    case .changeGroup: .changeGroup
    case .removeGroup: .removeGroup
    default: nil
    }
  }
}
