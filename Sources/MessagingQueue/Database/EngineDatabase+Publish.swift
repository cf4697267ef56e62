internal import FileLayer
package import GRDB

extension EngineDatabase {
  /// Stores messages in the order given, all or none, and returns their timetokens; the messages have
  /// been checked.
  ///
  /// A message whose deduplication id is known stores nothing and gets the timetoken of the first.
  package func publish(_ messages: [Message], in db: Database) throws -> [Timetoken] {
    if messages.isEmpty { return [] }
    var publication: Publication?
    let timetokens = try publish(messages, in: &publication, db)
    try publication?.finish()
    return timetokens
  }

  /// The same as a part of what a transaction publishes: its sums are written when that is finished.
  ///
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
