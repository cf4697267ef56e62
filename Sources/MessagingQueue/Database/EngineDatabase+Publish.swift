internal import FileLayer
package import GRDB

extension EngineDatabase {
  /// Publishes in the caller's transaction, all or none.
  ///
  /// - Throws: `invalidArgument` outside a transaction, `payloadTooLarge`, `diskFull`, `damaged`,
  ///   `inputOutput`: none of them is published then.
  package func publish(
    _ messages: [Message], in db: Database
  ) throws(EngineError) -> [Timetoken] {
    try check(messages)
    guard db.isInsideTransaction else {
      throw EngineError(
        .invalidArgument, "publishing in a transaction of yours, and there is none",
        hint: "call it inside database.write, or inTransaction")
    }
    if messages.isEmpty { return [] }
    return try translatingErrors(during: "publishing in a transaction of yours") {
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
  /// They have been checked; the sums are written when the publication is finished.
  /// A message whose deduplication id is known stores nothing and gets the timetoken of the first.
  /// When it throws, `publication` is to be as it was before; that of a single message is.
  func publish(
    _ messages: [Message], in publication: inout Publication?, _ db: Database
  ) throws -> [Timetoken] {
    var open = try publication.take() ?? Publication(self, db)
    defer { publication = open }
    let storedBefore = open.storedCount
    let timetokens = try messages.map { try open.store($0) }
    tallies?.note { $0.published += open.storedCount - storedBefore }
    return timetokens
  }

  /// Refuses messages that this engine does not take.
  func check(_ messages: [Message]) throws(EngineError) {
    for (index, message) in messages.enumerated() {
      let which = messages.count == 1 ? "the message" : "message \(index + 1) of \(messages.count)"
      try message.check(configuration, as: which)
    }
  }
}
