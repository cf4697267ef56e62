/// Which messages an export takes.
public struct MessageSelection: Sendable, Hashable {
  /// Those of these channels.
  ///
  /// Default: nil, of all.
  public var channels: Set<Channel>?

  /// Those after this timetoken.
  ///
  /// Default: nil, from the oldest on.
  public var after: Timetoken?

  /// Selects everything.
  public init(channels: Set<Channel>? = nil, after: Timetoken? = nil) {
    self.channels = channels
    self.after = after
  }
}

/// How far an export or an import has come.
public struct ExchangeProgress: Sendable, Hashable {
  /// Messages of an export, bytes of the file of an import; never more than ``total``.
  public let completed: Int
  /// All of them.
  public let total: Int
}

/// What an export has written.
public struct ExportReport: Sendable, Hashable {
  /// Messages in the file.
  public internal(set) var messageCount = 0
  /// How many of them an earlier attempt had written, that was interrupted; nil if there was none.
  public internal(set) var resumedAfter: Int?
  /// Whether the database has changed between the attempts: what was acknowledged meanwhile may stand
  /// in the file as not acknowledged.
  public internal(set) var changedMeanwhile = false
}
