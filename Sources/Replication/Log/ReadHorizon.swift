/// Up to when a node knows the log: what it had by then is applied here.
///
/// It also moves on while the log grows faster than the node reads, when its end is never reached.
package struct ReadHorizon: Sendable {
  /// On the node's clock; nil before the first read.
  package private(set) var time: Duration?
  /// What the log had at a time, until all of that is applied.
  private var next: (last: UInt64, at: Duration)?

  package init() {}

  /// A batch was applied.
  ///
  /// - Parameters:
  ///   - position: the last record that is applied now.
  ///   - isComparing: whether records up to there can be others than those of the log.
  /// - Returns: whether the time has moved on.
  @discardableResult
  package mutating func note(
    _ batch: Applier.Batch, position: UInt64, isComparing: Bool = false
  ) -> Bool {
    if isComparing { return false }
    let before = time
    if let reached = next, position >= reached.last { (time, next) = (reached.at, nil) }
    if batch.isEndKnown {
      if position == batch.last { (time, next) = (batch.sentAt, nil) }
      if position < batch.last, next == nil { next = (batch.last, batch.sentAt) }
    }
    return time != before
  }
}
