internal import GRDB

/// Tells the bell how each transaction of the engine's connection ends, the caller's own included.
///
/// It asks for no event of a row, so that writing is not slowed down.
final class PublicationObserver: TransactionObserver {
  private weak let bell: ChangeBell?

  /// - Parameter bell: not kept alive; it knows the pool, which keeps its observers.
  init(_ bell: ChangeBell) { self.bell = bell }

  func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }
  func databaseDidChange(with event: DatabaseEvent) {}
  func databaseDidCommit(_ db: Database) { bell?.ringForAnnounced() }
  func databaseDidRollback(_ db: Database) { bell?.takeBackAnnounced() }
}
