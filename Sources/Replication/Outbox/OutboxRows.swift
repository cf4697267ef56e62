/// The rows of an ``Outbox``: sealed records by author and number.
package protocol OutboxRows {
  /// The authors that have records here, in the order in which they came.
  var authors: [AuthorID] { get throws }

  /// The oldest key of all records.
  var oldestKey: UInt32? { get throws }

  /// An author's records after a number, in their order, at most so many.
  func records(of author: AuthorID, after number: UInt64, most: Int) throws -> [SealedRecord]

  /// The number of an author's first record.
  func firstNumber(of author: AuthorID) throws -> UInt64?

  /// Adds records; one that is here already stays.
  mutating func insert(_ records: [SealedRecord]) throws

  /// Removes an author's records up to this number.
  mutating func remove(through name: RecordNumber) throws
}

extension OutboxRows {
  /// An author's records.
  package func records(of author: AuthorID) throws -> [SealedRecord] {
    try records(of: author, after: 0, most: .max)
  }

  mutating func removeAll(of author: AuthorID) throws {
    try remove(through: RecordNumber(author, .max))
  }
}
