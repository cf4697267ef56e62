internal import FileLayer
internal import Foundation
internal import GRDB

extension EngineDatabase {
  /// Removes delivered messages for good.
  ///
  /// - Throws: `unknownLease` if a token settles nothing; the others are settled all the same.
  package func acknowledge(_ tokens: [LeaseToken]) throws(EngineError) {
    try settle(tokens, during: "acknowledging") { db in
      let deleteDelivery = try db.cachedStatement(sql: "DELETE FROM delivery WHERE timetoken = ?")
      let deleteMessage = try db.cachedStatement(sql: "DELETE FROM message WHERE timetoken = ?")
      return { timetoken in
        try deleteDelivery.execute(arguments: [timetoken.rawValue])
        try deleteMessage.execute(arguments: [timetoken.rawValue])
      }
    }
  }

  /// Gives delivered messages back: at once, or when `delay` is over or the machine restarts.
  ///
  /// - Throws: `unknownLease` if a token settles nothing; the others are settled all the same.
  package func release(
    _ tokens: [LeaseToken], after delay: Duration = .zero
  ) throws(EngineError) {
    guard delay >= .zero, delay <= EngineConfiguration.longestHold else {
      throw EngineError(
        .invalidArgument, "a delay of \(delay)", hint: "nothing, or at most 366 days")
    }
    try settle(tokens, during: "releasing") { db in
      let update = try db.cachedStatement(
        sql: "UPDATE delivery SET lease = NULL, held_boot = ?, held_until = ? WHERE timetoken = ?")
      let boot = delay == .zero ? nil : bootNumber
      let until = delay == .zero ? nil : nanosecondsSinceBoot + delay.wholeNanoseconds
      return { timetoken in
        try update.execute(arguments: [boot, until, timetoken.rawValue])
      }
    }
  }

  /// Does to each delivery that its token still opens what `prepare` returns, in one transaction.
  private func settle(
    _ tokens: [LeaseToken], during operation: String,
    _ prepare: (Database) throws -> (Timetoken) throws -> Void
  ) throws(EngineError) {
    if tokens.isEmpty { return }
    let unknown = try write(during: operation) { db in
      let settleOne = try prepare(db)
      let select = try db.cachedStatement(sql: "SELECT lease FROM delivery WHERE timetoken = ?")
      var unknown: [LeaseToken] = []
      for token in tokens {
        // Nil: no such delivery, or one that nobody has leased.
        let lease = try Data.fetchOne(select, arguments: [token.timetoken.rawValue])
        if let lease, token.opens([UInt8](lease)) {
          try settleOne(token.timetoken)
        } else {
          unknown.append(token)
        }
      }
      return unknown
    }
    if unknown.isEmpty { return }
    throw EngineError(
      .unknownLease,
      "\(operation): \(unknown.count) of \(tokens.count) deliveries were no longer leased to you",
      hint: "take a longer lease, or settle sooner", unknownLeases: unknown)
  }
}
