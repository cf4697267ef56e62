internal import GRDB
public import SystemPackage

extension MessagingEngine {
  /// Writes messages, and what their consumers have done with them, into a file of JSON lines:
  /// `docs/reference/message-export.md`.
  ///
  /// **The file is plaintext.** It has mode 0600 and the name `PATH.partial`, and gets its final
  /// name when it is complete; on return it is on the disk. If the process is killed or the call
  /// fails, the same call continues after the last complete message. The export reads one snapshot,
  /// while other callers work.
  ///
  /// - Parameters:
  ///   - selection: default: all messages.
  ///   - progress: called from time to time with the messages written, on a thread that can block.
  /// - Throws: `alreadyExists`; `foreignFile` if `PATH.partial` is not this user's own;
  ///   `channelMissing`; `busy` while another export writes the same file; `diskFull`,
  ///   `inputOutput`, `stopped`, `vaultLocked`, `damaged`.
  public func exportMessages(
    _ selection: MessageSelection = MessageSelection(), to path: FilePath,
    progress: @escaping @Sendable (WorkProgress) -> Void = { _ in }
  ) async throws(EngineError) -> ExportReport {
    try await access.read(during: "exporting messages") { db in
      let file = try ExportFile(path)
      let place = try file.findPlace(of: selection, in: db)
      var report = ExportReport()
      if file.isWhole {
        report.messageCount = place.messageCount
        report.resumedAfter = report.messageCount
      } else {
        var exporter = try MessageExporter(db, selection, from: place, progress: progress) {
          try file.write($0)
        }
        report = try exporter.run()
      }
      try file.finish()
      return report
    }
  }

  /// Passes the same lines to a closure, in chunks of whole lines of about 256 KiB; it cannot be
  /// resumed.
  ///
  /// - Parameter write: called on a thread that can block.
  /// - Throws: the ``EngineError`` of `write`, and the errors of
  ///   ``exportMessages(_:to:progress:)``.
  public func exportMessages(
    _ selection: MessageSelection = MessageSelection(),
    progress: @escaping @Sendable (WorkProgress) -> Void = { _ in },
    write: @escaping @Sendable ([UInt8]) throws -> Void
  ) async throws(EngineError) -> ExportReport {
    try await access.read(during: "exporting messages") { db in
      var exporter = try MessageExporter(
        db, selection, from: ExportPlace(), progress: progress, write: write)
      return try exporter.run()
    }
  }
}

/// The messages of an export.
public struct MessageSelection: Sendable, Hashable {
  /// Only messages of these channels.
  ///
  /// Default: nil, all channels.
  public var channels: Set<Channel>?

  /// Only messages after this timetoken.
  ///
  /// Default: nil, from the oldest on.
  public var after: Timetoken?

  /// Selects all messages, unless a parameter limits them.
  public init(channels: Set<Channel>? = nil, after: Timetoken? = nil) {
    self.channels = channels
    self.after = after
  }
}

/// How far an export, an import or a verification has come.
public struct WorkProgress: Sendable, Hashable {
  /// Messages, or bytes of an import or of free space; never more than ``total``.
  public let completed: Int
  /// The sum at the end.
  public let total: Int
}

/// The result of an export.
public struct ExportReport: Sendable, Hashable {
  /// Messages in the file.
  public internal(set) var messageCount = 0
  /// How many of them an interrupted earlier attempt had written; nil if there was none.
  public internal(set) var resumedAfter: Int?
  /// Whether the database changed between the attempts.
  ///
  /// The messages that the earlier attempt had written are then in the file as they were, also those
  /// that were acknowledged, removed or made ready again since.
  public internal(set) var databaseChanged = false
}
