/// How much of an exhaustive test runs: a seeded sample, or all of it with `DATAVAULT_EXHAUSTIVE=1`.
///
/// `make nightly PART=exhaustive` runs everything. `DATAVAULT_SAMPLE_SEED` draws another sample.
package enum Exhaustive {
  package static let isRequested = (setting("DATAVAULT_EXHAUSTIVE") ?? 0) == 1

  /// The distance from one tried step to the next: `gate` in a sample, otherwise 1.
  package static func distance(_ gate: Int) -> Int { isRequested ? 1 : gate }

  /// The first tried step, below `distance`.
  ///
  /// - Parameter name: different names begin at different steps.
  package static func first(_ name: String, of distance: Int) -> Int {
    let seed: UInt64 = setting("DATAVAULT_SAMPLE_SEED") ?? 0
    let hash = name.utf8.reduce(seed) { SeededRandom.mix($0 ^ UInt64($1)) }
    return Int(hash % UInt64(distance))
  }

  /// Every element, or a sample of one in `gate`, at least one.
  package static func sample<All: Collection>(
    of all: All, oneIn gate: Int, file: String = #fileID, line: Int = #line
  ) -> [All.Element] {
    let distance = min(distance(gate), max(all.count, 1))
    let first = first("\(file):\(line)", of: distance)
    return all.enumerated().filter { $0.offset % distance == first }.map(\.element)
  }
}
