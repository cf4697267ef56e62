internal import Synchronization

extension ChangeBell {
  /// What a transaction that is not committed yet will ring for.
  struct Announcement: Sendable {
    var channels: Set<Channel> = []
    var publications: [OwnChanges.Publication] = []
  }

  /// Has the bell ring when the transaction commits, whoever commits it, and not if it is rolled
  /// back: ``PublicationObserver`` sees to that.
  ///
  /// It belongs into the transaction. What is rolled back to a savepoint rings all the same, which
  /// wakes for nothing and harms nobody.
  ///
  /// - Parameters:
  ///   - timetokens: of the messages that were just stored.
  ///   - previous: the greatest timetoken that was given out before them.
  ///   - channels: where they were published.
  func announce(_ timetokens: [Timetoken], after previous: Int64, in channels: Set<Channel>) {
    guard let first = timetokens.first, let last = timetokens.last else { return }
    let publication = OwnChanges.Publication(
      previous: previous, first: first.rawValue, last: last.rawValue)
    ownChanges.note(publication)
    announced.withLock { announced in
      announced.channels.formUnion(channels)
      announced.publications.append(publication)
    }
  }

  /// The same for messages that were published before and can be received again.
  func announceReturn(to channel: Channel) {
    announced.withLock { _ = $0.channels.insert(channel) }
  }

  /// Rings for what was announced, now that it is committed.
  func ringForAnnounced() {
    let announcement = takeAnnounced()
    if announcement.channels.isEmpty { return }
    if !announcement.publications.isEmpty { ownChanges.settle() }
    ring(in: announcement.channels)
  }

  /// Forgets what was announced, and rolled back.
  func takeBackAnnounced() {
    for publication in takeAnnounced().publications { ownChanges.takeBack(publication) }
  }

  private func takeAnnounced() -> Announcement {
    announced.withLock { announced in
      defer { announced = Announcement() }
      return announced
    }
  }
}
