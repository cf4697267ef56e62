internal import GRDB

extension EngineDatabase {
  /// Publishes in the caller's transaction, all or none.
  ///
  /// - Throws: `invalidArgument` outside a transaction, `payloadTooLarge`, `diskFull`, `damaged`,
  ///   `inputOutput`: after an error no message is published.
  func publish(
    _ messages: [Message], in db: Database
  ) throws(EngineError) -> [Timetoken] {
    try check(messages)
    try EngineError.requireArgument(
      db.isInsideTransaction, "publishing: the connection has no open transaction",
      hint: "call it inside write of the engine")
    if messages.isEmpty { return [] }
    return try translatingErrors(during: "publishing in the caller's transaction") {
      var timetokens: [Timetoken] = []
      try db.inSavepoint {
        var publication: Publication?
        timetokens = try publish(messages, in: &publication, db)
        try Self.finish(&publication, db)
        return .commit
      }
      return timetokens
    }
  }

  /// Stores messages in the order given, as a part of what a transaction publishes.
  ///
  /// The caller has checked them; ``Publication/finish()`` writes the sums. A message with a known
  /// deduplication id stores nothing and gets the timetoken of the first. After an error the caller
  /// must restore `publication`, except after a single message, which leaves it unchanged.
  func publish(
    _ messages: [Message], in publication: inout Publication?, _ db: Database
  ) throws -> [Timetoken] {
    var open = try publication.take() ?? Publication(self, db)
    defer { publication = open }
    let storedBefore = open.storedCount
    let timetokens = try messages.map { try open.store($0) }
    commitCounter?.note { $0.published += open.storedCount - storedBefore }
    return timetokens
  }

  /// Throws for messages that this engine does not accept.
  func check(_ messages: [Message]) throws(EngineError) {
    for (index, message) in messages.enumerated() {
      let which = messages.count == 1 ? "the message" : "message \(index + 1) of \(messages.count)"
      try message.check(configuration, as: which)
    }
  }
}
