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

  private let lists = Mutex<[ObjectIdentifier: [PublishedRange]]>([:])

  package init() {}

  fileprivate func begin(_ list: LocalPublicationList) {
    lists.withLock { $0[ObjectIdentifier(list)] = [] }
  }

  fileprivate func end(_ list: LocalPublicationList) {
    lists.withLock { $0[ObjectIdentifier(list)] = nil }
  }

  /// Notes a publication; call it before the commit, so that no reader sees the messages without
  /// this note.
  package func note(_ publication: PublishedRange) {
    changeLists { $0.add(publication) }
  }

  /// Removes a publication that was rolled back: its timetokens can be assigned again.
  package func rollBack(_ publication: PublishedRange) {
    changeLists { list in
      if let index = list.lastIndex(of: publication) { list.remove(at: index) }
    }
  }

  /// Joins neighbouring ranges, after a publication was committed.
  package func settle() {
    changeLists { $0.joinNeighbours() }
  }

  private func changeLists(_ change: (inout [PublishedRange]) -> Void) {
    lists.withLock { lists in
      for id in lists.keys { change(&lists[id, default: []]) }
    }
  }

  fileprivate func ranges(
    of list: LocalPublicationList, after timetoken: Int64
  ) -> [ClosedRange<Int64>] {
    lists.withLock { lists in
      lists[ObjectIdentifier(list), default: []].removeAll { $0.last <= timetoken }
      return lists[ObjectIdentifier(list), default: []].map { $0.first...$0.last }
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
package final class LocalPublicationList: Sendable {
  private let changes: LocalPublications

  /// Begins with the next publication.
  package init(_ changes: LocalPublications) {
    self.changes = changes
    changes.begin(self)
  }

  deinit { changes.end(self) }

  /// The ranges after a timetoken, in their order; all others are dropped.
  package func ranges(after timetoken: Int64) -> [ClosedRange<Int64>] {
    changes.ranges(of: self, after: timetoken)
  }
}
