internal import GRDB

/// The deliveries of one consumer that a transaction ends for good: they, and the messages that nobody
/// else needs, go together.
struct Acknowledgement {
  private let consumer: ConsumerRecord
  private var timetokens: Set<Int64> = []
  private var orderingKeys: [String] = []

  init(_ consumer: ConsumerRecord) {
    self.consumer = consumer
  }

  /// - Returns: false if it was added before.
  mutating func add(_ timetoken: Timetoken, orderingKey: String?) -> Bool {
    guard timetokens.insert(timetoken.rawValue).inserted else { return false }
    if let orderingKey { orderingKeys.append(orderingKey) }
    return true
  }

  func finish(_ db: Database) throws {
    let deliveries = DeliveryTable(consumer, db)
    let list = TimetokenList(timetokens)
    try deliveries.delete(list)
    for key in orderingKeys { try deliveries.unblock(key) }
    if consumer.keepsAcknowledged { return }
    var removal = MessageRemoval(db, channelID: consumer.channelID)
    if consumer.isAlone {
      try removal.remove(list)
    } else {
      for timetoken in timetokens {
        try removal.removeUnlessNeeded(Timetoken(unchecked: timetoken))
      }
    }
    try removal.finish()
  }
}

/// Any number of timetokens as one parameter: `timetoken IN (SELECT value FROM json_each(?))`.
struct TimetokenList {
  let json: String

  init(_ timetokens: some Collection<Int64>) {
    json = "[\(timetokens.map(String.init).joined(separator: ","))]"
  }
}
