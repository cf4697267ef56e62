/// The log of a shard, as brokers keep it.
///
/// Calls block their thread; one thread reads, another appends.
package protocol ReplicatedLog: AnyObject, Sendable {
  /// Appends records in this order.
  ///
  /// It waits only so that not too many are under way: only what is read back counts.
  func append(_ records: [SealedRecord]) throws

  /// Reads the record at `place`, unless that is 0, and those that follow; waits for the first that follows.
  func read(at place: UInt64, mostBytes: Int, wait: Duration) throws -> Applier.Batch

  /// Removes the records up to a position.
  func trim(through position: UInt64) throws
}

/// Requests between the members of a shard, through the same brokers.
///
/// Their bytes are sealed.
package protocol MemberExchange: AnyObject, Sendable {
  /// Asks a member.
  ///
  /// - Parameter isReply: called on a thread of the library; what it refuses does not end the wait, because everyone who
  ///   can publish to the brokers can send it.
  func request(
    _ bytes: [UInt8], to member: MemberID, within limit: Duration,
    isReply: @escaping @Sendable ([UInt8]) -> Bool
  ) async throws -> [UInt8]

  /// Answers the requests to a member.
  ///
  /// - Parameter answer: called on a thread of the library, which it must not block; `reply` can be called later, on
  ///   any thread.
  func serve(
    as member: MemberID,
    _ answer:
      @escaping @Sendable (_ request: [UInt8], _ reply: @escaping @Sendable ([UInt8]) -> Void)
      -> Void
  ) throws
}
