import FaultVFS
import FileLayer
import SealedVFS
import SystemPackage

/// Rebuilds what power cuts could have left of a recorded work, and opens each.
struct CrashEnumeration {
  let work: RecordedWork
  let form: FileForm
  /// Whether an acknowledged step may be missing: durability was waived, not consistency.
  let mayForget: Bool

  /// What was found.
  struct Totals: Sendable {
    var states = 0
    /// States in which something acknowledged is missing, or that do not open.
    var lost = 0
    /// States that say what was never there.
    var wrong = 0
    /// The first few, in words.
    var findings: [String] = []
  }

  /// Tries every prefix with nothing and with everything unsynchronized lost, then, round after
  /// round, other choices by the die, until `stateCount` different states were opened.
  func callAsFunction(stateCount: Int, seed: UInt64) throws -> Totals {
    var totals = Totals()
    var seen: Set<Int> = []
    let checker = try StateChecker(work: work, form: form)
    var round = 0
    var fruitlessRounds = 0
    while (round < 2 || totals.states < stateCount) && fruitlessRounds < 8 {
      let before = totals.states
      var disk = VolatileDisk(work.initial)
      var acknowledged = 0
      for count in 0...work.events.count {
        if count > 0 {
          disk.apply(work.events[count - 1])
          if case .mark(let note) = work.events[count - 1] { acknowledged = Int(note) ?? 0 }
        }
        if round >= 2 && totals.states >= stateCount { break }
        let loss = loss(round, count, seed)
        let files = disk.files(after: loss)
        guard seen.insert(Self.hash(files, acknowledged)).inserted else { continue }
        totals.states += 1
        let verdict = checker.check(files, acknowledged: acknowledged, mayForget: mayForget)
        switch verdict {
        case .right: continue
        case .lost(let what):
          totals.lost += 1
          totals.note("lost: \(what), after event \(count) of \(work.events.count), \(loss)")
        case .wrong(let what):
          totals.wrong += 1
          totals.note("wrong: \(what), after event \(count) of \(work.events.count), \(loss)")
        }
      }
      fruitlessRounds = totals.states == before ? fruitlessRounds + 1 : 0
      round += 1
    }
    return totals
  }

  private func loss(_ round: Int, _ count: Int, _ seed: UInt64) -> VolatileDisk.Loss {
    switch round {
    case 0: .nothing
    case 1: .everythingUnsynchronized
    default: .some(seed: seed &+ UInt64(round) << 32 &+ UInt64(count))
    }
  }

  private static func hash(_ files: [String: [UInt8]], _ acknowledged: Int) -> Int {
    var hasher = Hasher()
    hasher.combine(acknowledged)
    for path in files.keys.sorted() {
      hasher.combine(path)
      files[path]?.withUnsafeBytes { hasher.combine(bytes: $0) }
    }
    return hasher.finalize()
  }
}

extension CrashEnumeration.Totals {
  fileprivate mutating func note(_ finding: String) {
    if findings.count < 5 { findings.append(finding) }
  }
}
