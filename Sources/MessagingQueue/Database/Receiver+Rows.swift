internal import Foundation
internal import GRDB

/// A row of ``Receiver/selectReady``.
struct ReadyDelivery {
  let timetoken: Timetoken
  let attemptCount: Int
  /// Whether a lease ended without an answer, rather than a release or a delay.
  let endedLease: Bool
  let orderingKey: String?
  let failures: String?
  let expires: Int64?
  let headers: [String: String]
  let payload: [UInt8]

  init(_ row: Row) throws {
    timetoken = Timetoken(unchecked: row[0])
    attemptCount = row[1]
    endedLease = row[2]
    orderingKey = row[3]
    failures = row[4]
    expires = row[5]
    headers = try HeaderCoding.decode(row[6])
    payload = try row.bytes(at: 7)
  }
}

/// A row of ``Receiver/selectNew(_:)``, without what is read only if it is delivered.
struct NewMessage {
  static let headersColumn = 5
  static let payloadColumn = 6

  let timetoken: Timetoken
  let priority: Priority
  let due: Int64?
  let expires: Int64?
  let orderingKey: String?

  init(_ row: Row) throws {
    timetoken = Timetoken(unchecked: row[0])
    priority = Priority(stored: row[1])
    due = row[2]
    expires = row[3]
    orderingKey = row[4]
  }
}

extension Row {
  /// A column's bytes, copied once.
  func bytes(at index: Int) throws -> [UInt8] {
    try withUnsafeData(atIndex: index) { [UInt8]($0 ?? Data()) }
  }
}
