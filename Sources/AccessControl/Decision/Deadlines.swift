internal import Foundation

/// Things that end, the next one first: a binary heap.
struct Deadlines<Element: Sendable>: Sendable {
  private var heap: [(end: Date, element: Element)] = []

  var count: Int { heap.count }

  /// The next end; nil if there is none.
  var next: Date? { heap.first?.end }

  mutating func insert(_ element: Element, at end: Date) {
    var child = heap.count
    heap.append((end, element))
    while child > 0, case let parent = (child - 1) / 2, heap[child].end < heap[parent].end {
      heap.swapAt(child, parent)
      child = parent
    }
  }

  /// Removes the next element if its end has come.
  mutating func removeNext(at now: Date) -> Element? {
    guard let first = heap.first, first.end <= now else { return nil }
    let last = heap.removeLast()
    if !heap.isEmpty {
      heap[0] = last
      sink()
    }
    return first.element
  }

  mutating func removeAll() { heap.removeAll() }

  private mutating func sink() {
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2]
      where child < heap.count && heap[child].end < heap[least].end {
        least = child
      }
      guard least != parent else { return }
      heap.swapAt(parent, least)
      parent = least
    }
  }
}
