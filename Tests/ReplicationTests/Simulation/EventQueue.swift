/// The events of a simulation in the order of their times, those of one time in the order in which they were added.
struct EventQueue<Event> {
  private struct Entry {
    let time: Int64
    let number: UInt64
    let event: Event

    func isBefore(_ other: Entry) -> Bool { (time, number) < (other.time, other.number) }
  }

  private var heap: [Entry] = []
  private var number: UInt64 = 0

  var count: Int { heap.count }

  mutating func add(_ event: Event, at time: Int64) {
    number += 1
    heap.append(Entry(time: time, number: number, event: event))
    var index = heap.count - 1
    while index > 0, heap[index].isBefore(heap[(index - 1) / 2]) {
      heap.swapAt(index, (index - 1) / 2)
      index = (index - 1) / 2
    }
  }

  mutating func next() -> (time: Int64, event: Event)? {
    guard let first = heap.first else { return nil }
    let last = heap.removeLast()
    if !heap.isEmpty {
      heap[0] = last
      var index = 0
      while true {
        var least = index
        for child in [2 * index + 1, 2 * index + 2]
        where child < heap.count && heap[child].isBefore(heap[least]) {
          least = child
        }
        if least == index { break }
        heap.swapAt(index, least)
        index = least
      }
    }
    return (first.time, first.event)
  }
}
