internal import GRDB

/// What a caller wants done in a transaction, while it waits for the commit.
struct WaitingVerb: Sendable {
  /// Rises with every verb that was handed in.
  let number: UInt64

  /// What is being done, for errors.
  let operation: String

  /// About how much it writes.
  let byteCount: Int

  /// The messages it publishes; nil if it does anything else.
  let messages: [Message]?

  /// Does it, and returns what tells the caller of its success once that is committed.
  ///
  /// What is published goes into the publication that the transaction's verbs share. May run again, in
  /// another transaction, when the first one was lost to somebody else's fault.
  let perform: @Sendable (Database, inout Publication?) throws -> @Sendable () -> Void

  /// Tells the caller why not.
  let fail: @Sendable (EngineError) -> Void
}
