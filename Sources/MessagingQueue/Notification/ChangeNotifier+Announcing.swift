internal import GRDB
internal import Synchronization

extension ChangeNotifier {
  /// The changes that an open transaction announces when it commits.
  struct Announcement: Sendable {
    var channels: Set<Channel> = []
    /// Whether something else has changed.
    var hasOtherChange = false
    var publications: [LocalPublications.PublishedRange] = []
    /// The number of the commit; nil if it is not known.
    var commitNumber: Int64?
  }

  /// Has the notifier wake waiters when the transaction commits, but not if it is rolled back:
  /// ``PublicationObserver`` sees both.
  ///
  /// Call it inside the transaction. A rollback to a savepoint does not undo it; waiters then wake
  /// and find nothing.
  ///
  /// - Parameters:
  ///   - timetokens: of the messages that were just stored.
  ///   - previous: the greatest timetoken that was assigned before them.
  ///   - channels: the channels of these messages.
  func announce(_ timetokens: [Timetoken], after previous: Int64, in channels: Set<Channel>) {
    guard let first = timetokens.first, let last = timetokens.last else { return }
    let publication = LocalPublications.PublishedRange(
      previous: previous, first: first.rawValue, last: last.rawValue)
    localPublications.note(publication)
    announced.withLock { announced in
      announced.channels.formUnion(channels)
      announced.publications.append(publication)
    }
  }

  /// Announces messages that were published before and can be received again.
  func announceReturn(to channel: Channel) {
    announced.withLock { _ = $0.channels.insert(channel) }
  }

  /// Announces a change that is in no channel: it wakes those that wait for all.
  func announceChange() {
    announced.withLock { $0.hasOtherChange = true }
  }

  /// Announces the number of the commit, whose waiters need no second look.
  ///
  /// Call it when nothing of the transaction can be undone alone any more.
  func announce(commit number: Int64) {
    announced.withLock { $0.commitNumber = number }
  }

  /// Notifies waiters of what was announced, after its commit.
  func notifyAnnounced() {
    let announcement = takeAnnounced()
    if announcement.channels.isEmpty, !announcement.hasOtherChange { return }
    if !announcement.publications.isEmpty { localPublications.settle() }
    if let number = announcement.commitNumber { noteOwnCommit(number) }
    notify(in: announcement.channels)
  }

  /// Drops what was announced, after its rollback.
  func rollBackAnnounced() {
    for publication in takeAnnounced().publications { localPublications.rollBack(publication) }
  }

  private func takeAnnounced() -> Announcement {
    announced.withLock { announced in
      defer { announced = Announcement() }
      return announced
    }
  }
}

/// Tells the notifier how each transaction of the engine's connection ends, the caller's own
/// included.
///
/// It observes no events of rows, so it does not slow writing down.
final class PublicationObserver: TransactionObserver {
  private weak let notifier: ChangeNotifier?

  /// - Parameter notifier: held weakly, as it references the pool, which retains its observers.
  init(_ notifier: ChangeNotifier) { self.notifier = notifier }

  func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }
  func databaseDidChange(with event: DatabaseEvent) {}
  func databaseDidCommit(_ db: Database) { notifier?.notifyAnnounced() }
  func databaseDidRollback(_ db: Database) { notifier?.rollBackAnnounced() }
}
