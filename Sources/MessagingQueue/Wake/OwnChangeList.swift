/// The own changes that one subscriber is not told of; they are kept as long as this is.
final class OwnChangeList: Sendable {
  private let changes: OwnChanges
  private let id: UInt64

  init(_ changes: OwnChanges) {
    self.changes = changes
    id = changes.begin()
  }

  deinit { changes.end(id) }

  func ranges(after timetoken: Int64) -> [ClosedRange<Int64>] {
    changes.ranges(id, after: timetoken)
  }
}
