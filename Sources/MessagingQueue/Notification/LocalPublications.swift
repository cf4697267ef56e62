internal import GRDB
internal import Synchronization

/// Which timetokens were published through this engine, for those who do not want to be told.
///
/// Nothing is kept while nobody asks. Ranges that nobody else's message can lie between are joined,
/// so that what is kept grows with the turns that engines take, not with the messages.
package final class LocalPublications: Sendable {
  /// What one publishing transaction added: from its first message to its last there is no other's.
  package struct Publication: Sendable, Hashable {
    /// The greatest timetoken that was given out before.
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
    var lists: [UInt64: [Publication]] = [:]
  }

  private let state = Mutex(State())

  package init() {}

  /// Begins to keep a list, and returns its number.
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

  /// Notes a publication; before its commit, so that nobody sees the messages and not this.
  package func note(_ publication: Publication) {
    state.withLock { state in
      for id in state.lists.keys { state.lists[id]?.add(publication) }
    }
  }

  /// Takes back what was rolled back: others may be given its timetokens.
  package func rollBack(_ publication: Publication) {
    state.withLock { state in
      for id in state.lists.keys {
        guard let index = state.lists[id]?.lastIndex(of: publication) else { continue }
        state.lists[id]?.remove(at: index)
      }
    }
  }

  /// Joins what can be joined, once the publication cannot be taken back any more.
  package func settle() {
    state.withLock { state in
      for id in state.lists.keys { state.lists[id]?.joinNeighbours() }
    }
  }

  /// The ranges of a list beyond a timetoken, in their order; the others are forgotten.
  package func ranges(_ id: UInt64, after timetoken: Int64) -> [ClosedRange<Int64>] {
    state.withLock { state in
      state.lists[id]?.removeAll { $0.last <= timetoken }
      return (state.lists[id] ?? []).map { $0.first...$0.last }
    }
  }
}

extension [LocalPublications.Publication] {
  /// What lies beyond the last timetoken before this was undone by a savepoint.
  fileprivate mutating func add(_ publication: LocalPublications.Publication) {
    while let last, last.last > publication.previous { removeLast() }
    append(publication)
  }

  /// All but the newest have met each other already.
  fileprivate mutating func joinNeighbours() {
    while count >= 2, self[count - 1].previous == self[count - 2].last {
      let last = removeLast().last
      let before = removeLast()
      append(
        LocalPublications.Publication(previous: before.previous, first: before.first, last: last))
    }
  }
}

/// The own changes that one subscriber is not told of; they are kept as long as this is.
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

/// Tells the notifier how each transaction of the engine's connection ends, the caller's own included.
///
/// It asks for no event of a row, so that writing is not slowed down.
final class PublicationObserver: TransactionObserver {
  private weak let notifier: ChangeNotifier?

  /// - Parameter notifier: not kept alive; it knows the pool, which keeps its observers.
  init(_ notifier: ChangeNotifier) { self.notifier = notifier }

  func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }
  func databaseDidChange(with event: DatabaseEvent) {}
  func databaseDidCommit(_ db: Database) { notifier?.notifyAnnounced() }
  func databaseDidRollback(_ db: Database) { notifier?.rollBackAnnounced() }
}
