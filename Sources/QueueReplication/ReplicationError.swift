internal import MessagingQueue
internal import Replication

/// Why a home is not replicated, or is replicated no longer.
package struct ReplicationError: Error, Sendable, CustomStringConvertible {
  /// The kind of failure, to be compared with the static members; a new version can add members.
  package struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The name of the member.
    package let description: String

    private init(_ name: String) { description = name }

    /// The log and what was applied contradict each other: the node stops applying until an operator has looked.
    package static let alarm = Code("alarm")
    /// The log no longer has what this member needs.
    package static let trimmed = Code("trimmed")
    /// A row of the tables of replication is not as this module wrote it.
    package static let damaged = Code("damaged")
    /// A newer version of this software has made the tables.
    package static let newerVersion = Code("newerVersion")
    /// Two processes replicate one home, or a snapshot of a running machine was resumed twice.
    package static let duplicated = Code("duplicated")
    /// The node was stopped.
    package static let stopped = Code("stopped")
    /// The home is not replicated, or it is already.
    package static let state = Code("state")
  }

  package let code: Code
  /// What failed and where, in lower case.
  package let message: String
  /// The next step, if there is one.
  package let hint: String?

  package init(_ code: Code, _ message: String, hint: String? = nil) {
    self.code = code
    self.message = message
    self.hint = hint
  }

  /// The message, and the hint in brackets.
  package var description: String { hint.map { "\(message) (\($0))" } ?? message }
}

extension ReplicationError {
  static func damaged(_ fault: String) -> ReplicationError {
    ReplicationError(
      .damaged, "the tables of replication are damaged: \(fault)",
      hint: "set this home aside, and join with a new one")
  }

  static let noMember = ReplicationError(
    .state, "this home is no member of a cluster",
    hint: "make it the first one with datavaultd cluster provision, or join with an invitation")

  static let salvaged = ReplicationError(
    .damaged, "this home was salvaged, and can lack rows that the other members have",
    hint: "leave with --without-brokers, export what only this home has, and join with a new home")

  static let stopped = ReplicationError(
    .stopped, "replication was stopped", hint: "start the server again")

  static let duplicated = ReplicationError(
    .duplicated, "the log has a record of this process that it did not write",
    hint: "two copies of a running machine replicate one home; stop one of them for good")

  static func newerVersion(_ version: Int64) -> ReplicationError {
    ReplicationError(
      .newerVersion,
      "the tables of replication have version \(version), this software \(ReplicationSchema.version)",
      hint: "use the version of datavaultd that made them")
  }

  /// The error for an alarm of the applier.
  init(_ alarm: Applier.Alarm) {
    switch alarm {
    case .trimmed(let needed, let first):
      self.init(
        .trimmed, "the log begins at record \(first), and this member needs record \(needed)",
        hint:
          "leave with --without-brokers, export what only this home has, and join with a new home")
    case .foreignLog(let position):
      self.init(
        .alarm, "the log differs from what was applied here, further back than brokers can forget",
        hint: "record \(position): compare the members before anything is removed")
    case .unreadable(let name):
      self.init(
        .alarm, "record \(name.number) of a member cannot be opened or read",
        hint: "if another member has a newer key, let it hand the key on: datavaultd cluster key")
    case .diverged(_, let position):
      self.init(
        .alarm, "another member has applied other records than this home up to record \(position)",
        hint: "datavaultd cluster verify on each member shows which one differs from the log")
    }
  }
}
