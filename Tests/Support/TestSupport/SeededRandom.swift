/// A small random generator (SplitMix64) with a seed, so that each run makes the same choices.
package struct SeededRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  /// The seed that `DATAVAULT_KILL_SEED` repeats, otherwise a random one.
  package static func killSeed() -> UInt64 {
    let seed = setting("DATAVAULT_KILL_SEED") ?? UInt64.random(in: 0...UInt64(UInt32.max))
    TestLog.note("DATAVAULT_KILL_SEED=\(seed)")
    return seed
  }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    return Self.mix(state)
  }

  /// A number from 0 to `bound` - 1.
  package mutating func next(_ bound: Int) -> Int { Int(next() % UInt64(max(bound, 1))) }

  /// True once in `bound` calls on average.
  package mutating func oneIn(_ bound: Int) -> Bool { next(bound) == 0 }

  /// Spreads the bits of a number.
  package static func mix(_ number: UInt64) -> UInt64 {
    var mixed = number
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }
}
