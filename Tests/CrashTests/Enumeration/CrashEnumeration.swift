import FaultVFS
import FileLayer
import FileRecording
import SealedVFS

/// Rebuilds states that power cuts can leave of a recorded workload, and opens each.
struct CrashEnumeration {
  let work: RecordedWork
  let form: FileForm
  /// Whether an acknowledged step can be missing, as durability was waived, but not consistency.
  let canForget: Bool

  /// The results of an enumeration.
  struct Totals: Sendable {
    var states = 0
    /// States that lack an acknowledged step, or that do not open.
    var lost = 0
    /// States with contents that never existed.
    var wrong = 0
    /// The first few findings, as text.
    private(set) var findings: [String] = []

    mutating func add(_ verdict: StateChecker.Verdict, _ place: String) {
      states += 1
      guard verdict != .right else { return }
      if case .lost = verdict { lost += 1 } else { wrong += 1 }
      if findings.count < 5 { findings.append("\(verdict), \(place)") }
    }
  }

  /// Tries every prefix with no unsynchronized write lost and with all of them lost.
  ///
  /// Then it tries other random choices in rounds, until `stateCount` different states were opened.
  func callAsFunction(stateCount: Int, seed: UInt64) throws -> Totals {
    var totals = Totals()
    var seen: Set<Int> = []
    let checker = try StateChecker(work: work, form: form)
    func check(_ disk: VolatileDisk, _ moment: Moment, _ loss: VolatileDisk.Loss) {
      let files = disk.files(after: loss)
      guard seen.insert(Self.hash(files, moment.acknowledged)).inserted else { return }
      totals.add(
        checker.check(files, acknowledged: moment.acknowledged, canForget: canForget),
        "after event \(moment.eventCount) of \(work.events.count), \(loss)")
    }
    eachMoment { disk, moment in
      check(disk, moment, .nothing)
      check(disk, moment, .everythingUnsynchronized)
    }
    // Several choices at each moment in one pass, as following the events costs time too.
    let choiceCount = UInt64(min(64, max(1, stateCount / (4 * work.events.count))))
    var round: UInt64 = 0
    var fruitlessRounds = 0
    while totals.states < stateCount && fruitlessRounds < 100 {
      let before = totals.states
      eachMoment { disk, moment in
        guard !disk.isSettled else { return }
        for choice in 0..<choiceCount where totals.states < stateCount {
          let seed = seed &+ round << 40 &+ choice << 32 &+ UInt64(moment.eventCount)
          check(disk, moment, .some(seed: seed))
        }
      }
      fruitlessRounds = totals.states == before ? fruitlessRounds + 1 : 0
      round += 1
    }
    return totals
  }

  /// A moment between two events.
  private struct Moment {
    let eventCount: Int
    let acknowledged: Int
  }

  private func eachMoment(_ body: (VolatileDisk, Moment) -> Void) {
    var disk = VolatileDisk(work.initial)
    var acknowledged = 0
    body(disk, Moment(eventCount: 0, acknowledged: 0))
    for (index, event) in work.events.enumerated() {
      disk.apply(event)
      if case .mark(let note) = event { acknowledged = Int(note) ?? 0 }
      body(disk, Moment(eventCount: index + 1, acknowledged: acknowledged))
    }
  }

  static func hash(_ files: [String: [UInt8]], _ acknowledged: Int) -> Int {
    var hasher = Hasher()
    hasher.combine(acknowledged)
    for path in files.keys.sorted() {
      hasher.combine(path)
      files[path]?.withUnsafeBytes { hasher.combine(bytes: $0) }
    }
    return hasher.finalize()
  }
}
