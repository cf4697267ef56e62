internal import FileLayer
internal import Foundation
internal import GRDB

extension EngineDatabase {
  /// Removes delivered messages for good.
  ///
  /// - Throws: `unknownLease` if a token settles nothing; the others are settled all the same.
  package func acknowledge(_ tokens: [LeaseToken]) throws(EngineError) {
    if tokens.isEmpty { return }
    let unknown = try write(during: "acknowledging") { db in try acknowledge(tokens, in: db) }
    try Self.require(unknown, of: tokens, during: "acknowledging")
  }

  /// The same as a part of the caller's transaction.
  ///
  /// - Returns: the tokens that settle nothing.
  func acknowledge(_ tokens: [LeaseToken], in db: Database) throws -> [LeaseToken] {
    let deleteDelivery = try db.cachedStatement(sql: "DELETE FROM delivery WHERE timetoken = ?")
    let deleteMessage = try db.cachedStatement(sql: "DELETE FROM message WHERE timetoken = ?")
    return try settle(tokens, in: db) { timetoken in
      try deleteDelivery.execute(arguments: [timetoken.rawValue])
      try deleteMessage.execute(arguments: [timetoken.rawValue])
    }
  }

  /// Gives delivered messages back: at once, or when `delay` is over or the machine restarts.
  ///
  /// - Throws: `unknownLease` if a token settles nothing; the others are settled all the same.
  package func release(
    _ tokens: [LeaseToken], after delay: Duration = .zero
  ) throws(EngineError) {
    try checkDelay(delay)
    if tokens.isEmpty { return }
    let unknown = try write(during: "releasing") { db in
      try release(tokens, after: delay, in: db)
    }
    try Self.require(unknown, of: tokens, during: "releasing")
  }

  func checkDelay(_ delay: Duration) throws(EngineError) {
    guard delay >= .zero, delay <= EngineConfiguration.longestHold else {
      throw EngineError(
        .invalidArgument, "a delay of \(delay)", hint: "nothing, or at most 366 days")
    }
  }

  /// The same as a part of the caller's transaction; the delay has been checked.
  ///
  /// - Returns: the tokens that settle nothing.
  func release(
    _ tokens: [LeaseToken], after delay: Duration, in db: Database
  ) throws -> [LeaseToken] {
    let update = try db.cachedStatement(
      sql: "UPDATE delivery SET lease = NULL, held_boot = ?, held_until = ? WHERE timetoken = ?")
    let boot = delay == .zero ? nil : bootNumber
    let until = delay == .zero ? nil : nanosecondsSinceBoot + delay.wholeNanoseconds
    return try settle(tokens, in: db) { timetoken in
      try update.execute(arguments: [boot, until, timetoken.rawValue])
    }
  }

  /// Does `settleOne` to each delivery that its token still opens, and returns the other tokens.
  private func settle(
    _ tokens: [LeaseToken], in db: Database, _ settleOne: (Timetoken) throws -> Void
  ) throws -> [LeaseToken] {
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

  /// - Throws: `unknownLease` unless every token has settled something.
  static func require(
    _ unknown: [LeaseToken], of tokens: [LeaseToken], during operation: String
  ) throws(EngineError) {
    if unknown.isEmpty { return }
    throw EngineError(
      .unknownLease,
      "\(operation): \(unknown.count) of \(tokens.count) deliveries were no longer leased to you",
      hint: "take a longer lease, or settle sooner", unknownLeases: unknown)
  }
}
