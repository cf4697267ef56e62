internal import GRDB
internal import Synchronization

/// The timetokens that were published through this engine, for subscribers that ignore them.
///
/// Nothing is stored without such a subscriber. Ranges with no other engine's message between them
/// are joined, so the size grows with the turns that engines take, not with the messages.
package final class LocalPublications: Sendable {
  /// The messages of one publishing transaction: from its first to its last there is no other's.
  package struct PublishedRange: Sendable, Hashable {
    /// The greatest timetoken that was assigned before.
    let previous: Int64
    let first: Int64
    let last: Int64

    package init(previous: Int64, first: Int64, last: Int64) {
      self.previous = previous
      self.first = first
      self.last = last
    }
  }

  private struct State {
    var nextID: UInt64 = 0
    var lists: [UInt64: [PublishedRange]] = [:]
  }

  private let state = Mutex(State())

  package init() {}

  /// Begins a list, and returns its number.
  package func begin() -> UInt64 {
    state.withLock { state in
      state.nextID += 1
      state.lists[state.nextID] = []
      return state.nextID
    }
  }

  /// Drops a list.
  func end(_ id: UInt64) {
    state.withLock { $0.lists[id] = nil }
  }

  /// Notes a publication; call it before the commit, so that no reader sees the messages without
  /// this note.
  package func note(_ publication: PublishedRange) {
    state.withLock { state in
      for id in state.lists.keys { state.lists[id]?.add(publication) }
    }
  }

  /// Removes a publication that was rolled back: its timetokens can be assigned again.
  package func rollBack(_ publication: PublishedRange) {
    state.withLock { state in
      for id in state.lists.keys {
        guard let index = state.lists[id]?.lastIndex(of: publication) else { continue }
        state.lists[id]?.remove(at: index)
      }
    }
  }

  /// Joins neighbouring ranges, after a publication was committed.
  package func settle() {
    state.withLock { state in
      for id in state.lists.keys { state.lists[id]?.joinNeighbours() }
    }
  }

  /// The ranges of a list after a timetoken, in their order; all others are dropped.
  package func ranges(_ id: UInt64, after timetoken: Int64) -> [ClosedRange<Int64>] {
    state.withLock { state in
      state.lists[id]?.removeAll { $0.last <= timetoken }
      return (state.lists[id] ?? []).map { $0.first...$0.last }
    }
  }
}

extension [LocalPublications.PublishedRange] {
  /// Publications after the last timetoken before this one were undone by a savepoint.
  fileprivate mutating func add(_ publication: LocalPublications.PublishedRange) {
    while let last, last.last > publication.previous { removeLast() }
    append(publication)
  }

  /// All but the newest two are already joined.
  fileprivate mutating func joinNeighbours() {
    while count >= 2, self[count - 1].previous == self[count - 2].last {
      let last = removeLast().last
      let before = removeLast()
      append(
        LocalPublications.PublishedRange(previous: before.previous, first: before.first, last: last)
      )
    }
  }
}

/// The publications that one subscriber ignores; they are stored as long as this object exists.
final class LocalPublicationList: Sendable {
  private let changes: LocalPublications
  private let id: UInt64

  init(_ changes: LocalPublications) {
    self.changes = changes
    id = changes.begin()
  }

  deinit { changes.end(id) }

  func ranges(after timetoken: Int64) -> [ClosedRange<Int64>] {
    changes.ranges(id, after: timetoken)
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
