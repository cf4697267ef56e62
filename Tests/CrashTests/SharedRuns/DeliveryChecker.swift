/// Checks what the workers on one channel have seen against the promises of a queue.
struct DeliveryChecker: Sendable {
  /// A message: its publisher's number, and its own.
  struct Label: Hashable, Sendable, Comparable, CustomStringConvertible {
    let publisher: Int
    let number: Int

    var description: String { "\(publisher)/\(number)" }

    static func < (a: Label, b: Label) -> Bool { (a.publisher, a.number) < (b.publisher, b.number) }
  }

  /// The knowledge about a delivery's acknowledgement.
  enum Settlement: Hashable, Sendable {
    case none
    /// The receiver was killed during the acknowledgement.
    case perhaps
    /// The acknowledgement had returned by then.
    case certain(at: Duration)
  }

  /// One process that received, with the times between which it ran.
  struct Visit: Sendable {
    var start: Duration
    var end: Duration
    var lease: Duration
    var deliveries: [(label: Label, key: String?, settlement: Settlement)] = []
  }

  /// How many messages each publisher got acknowledged.
  var acknowledged: [Int]
  var visits: [Visit] = []
  /// The last visit, which receives everything that is left.
  var drain: Visit?

  var all: [Visit] { visits + (drain.map { [$0] } ?? []) }

  /// Messages that are neither in the queue nor acknowledged by a receiver.
  var lost: [Label] {
    var settled: Set<Label> = []
    var counts = acknowledged
    for visit in all {
      for delivery in visit.deliveries {
        let label = delivery.label
        guard counts.indices.contains(label.publisher) else { continue }
        // Commits are in order, so a message that was seen proves those before it.
        counts[label.publisher] = max(counts[label.publisher], label.number + 1)
        if delivery.settlement != .none { settled.insert(label) }
      }
    }
    return counts.enumerated().flatMap { publisher, count in
      (0..<count).map { Label(publisher: publisher, number: $0) }.filter { !settled.contains($0) }
    }
  }

  /// Deliveries that break a promise, as text.
  var wrong: [String] { twice + again + early + outOfOrder }

  /// A process that acknowledges what it prints prints it once, and no process prints a message
  /// twice.
  private var twice: [String] {
    all.flatMap { visit in
      Dictionary(grouping: visit.deliveries, by: \.label).filter { $1.count > 1 }
        .map { "\($0.key) was delivered \($0.value.count) times to one receiver" }
    }
  }

  /// A message that was acknowledged before a process began is not delivered to it.
  private var again: [String] {
    var end: [Label: Duration] = [:]
    for delivery in all.flatMap(\.deliveries) {
      if case .certain(let time) = delivery.settlement {
        end[delivery.label] = min(end[delivery.label] ?? time, time)
      }
    }
    return all.flatMap { visit in
      visit.deliveries.filter { delivery in end[delivery.label].map { $0 < visit.start } ?? false }
        .map { "\($0.label) was delivered after its acknowledgement" }
    }
  }

  /// A lease begins no earlier than its process.
  private var early: [String] {
    pairs { first, second in
      guard second.end < first.start + first.lease else { return [] }
      let held = Set(first.deliveries.map(\.label))
      return second.deliveries.filter { held.contains($0.label) }
        .map { "\($0.label) was delivered again before its lease had ended" }
    }
  }

  /// No message of a key comes before an earlier one is acknowledged.
  private var outOfOrder: [String] {
    let within = all.flatMap { visit in
      var last: [String: Label] = [:]
      return visit.deliveries.compactMap { delivery -> String? in
        guard let key = delivery.key else { return nil }
        defer { last[key] = delivery.label }
        guard let before = last[key], before > delivery.label else { return nil }
        return "\(delivery.label) came after \(before)"
      }
    }
    return within
      + pairs { first, second in
        var newest: [String: Label] = [:]
        for delivery in first.deliveries {
          guard let key = delivery.key else { continue }
          newest[key] = max(newest[key] ?? delivery.label, delivery.label)
        }
        return second.deliveries.compactMap { delivery in
          guard let key = delivery.key, let before = newest[key], before > delivery.label else {
            return nil
          }
          return "\(delivery.label) came after \(before)"
        }
      }
  }

  /// Every two visits of which one ended before the other began.
  private func pairs(_ findings: (Visit, Visit) -> [String]) -> [String] {
    all.flatMap { first in
      all.flatMap { second in first.end < second.start ? findings(first, second) : [] }
    }
  }
}
