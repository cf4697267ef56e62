/// The rules of replication that the simulation can turn off, each on its own, to show that it is needed.
///
/// A program always works under ``all``. Each rule stands in `docs/explanation/replication.md` under its name.
package struct SafetyRules: OptionSet, Sendable, Hashable {
  package let rawValue: UInt32

  package init(rawValue: UInt32) { self.rawValue = rawValue }

  /// A record whose number its author has used before is skipped.
  package static let skipsRepeated = SafetyRules(rawValue: 1 << 0)
  /// A record that is not the next of its author is skipped, and its author sends again from there.
  package static let skipsGaps = SafetyRules(rawValue: 1 << 1)
  /// A node draws new author ids with each start.
  package static let drawsAuthorsAtStart = SafetyRules(rawValue: 1 << 2)
  /// The first record of an author waits for the last one of the author before it on the same disk.
  package static let followsEarlierAuthor = SafetyRules(rawValue: 1 << 3)
  /// Each read begins with the last applied record, and what differs is undone.
  package static let comparesOverlap = SafetyRules(rawValue: 1 << 4)
  /// What is undone goes back to the outbox, of any author.
  package static let returnsUndone = SafetyRules(rawValue: 1 << 5)
  /// An applied record can be undone until the brokers have had their interval to synchronize it.
  package static let keepsTail = SafetyRules(rawValue: 1 << 6)
  /// A database that is replaced by a member's backup hands its outbox and its tail on.
  package static let carriesOutbox = SafetyRules(rawValue: 1 << 7)
  /// A log that begins behind the next record is refused.
  package static let refusesTrimmedLog = SafetyRules(rawValue: 1 << 8)
  /// A trim takes no record that a member still needs.
  package static let trimsBehindMembers = SafetyRules(rawValue: 1 << 9)
  /// A joiner is a member before it takes the backup.
  package static let joinsBeforeBackup = SafetyRules(rawValue: 1 << 10)
  /// A record counts its time only up to a bound ahead of the owner's.
  package static let boundsFastClocks = SafetyRules(rawValue: 1 << 11)
  /// The window of deduplication is counted in timetokens, not on a node's clock.
  package static let deduplicatesByTimetoken = SafetyRules(rawValue: 1 << 12)
  /// Settlements of an owner that is no longer one are refused.
  package static let fencesEpochs = SafetyRules(rawValue: 1 << 13)
  /// A new owner waits until the leases of the old one have ended.
  package static let waitsForOldLeases = SafetyRules(rawValue: 1 << 14)
  /// An owner that does not read its own heartbeat back leases nothing.
  package static let needsHeartbeat = SafetyRules(rawValue: 1 << 15)
  /// A message whose settlement is under way is not leased.
  package static let blocksInFlight = SafetyRules(rawValue: 1 << 16)
  /// A worker is answered after its settlement was read back.
  package static let answersAfterReadBack = SafetyRules(rawValue: 1 << 17)
  /// A settlement that is repeated with its lease is answered with "done".
  package static let answersRepeated = SafetyRules(rawValue: 1 << 18)
  /// Of the messages with one ordering key, one is leased at a time, in order.
  package static let ordersKeys = SafetyRules(rawValue: 1 << 19)
  /// Settlements name a message by its author and number, not by its timetoken.
  package static let namesByOrigin = SafetyRules(rawValue: 1 << 20)
  /// What was undone raises the timetokens that follow, and cursors in between begin again at the loss.
  package static let repairsCursors = SafetyRules(rawValue: 1 << 21)
  /// An owner that undoes records, or starts, is an owner no longer.
  package static let endsEpochOnUndo = SafetyRules(rawValue: 1 << 22)
  /// A record under a key that was dropped is skipped.
  package static let skipsRetiredKeys = SafetyRules(rawValue: 1 << 23)
  /// Writing changes to a key once every member has it.
  package static let switchesKeyWithAll = SafetyRules(rawValue: 1 << 24)

  /// Every rule.
  package static let all = SafetyRules(rawValue: (1 << 25) - 1)
}
