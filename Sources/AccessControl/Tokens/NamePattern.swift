/// A regular expression in a token, searched for anywhere in a name.
///
/// A secret-key holder writes it once, but it runs on every call. So it is a subset of RE2's syntax
/// without anything that needs backtracking, compiled to a list of steps of bounded length. All
/// alternatives advance together through the name (Thompson's construction): the time is at most
/// the number of steps times the number of characters, whatever the pattern is.
///
/// | syntax | |
/// |---|---|
/// | characters, `.`, `\` before punctuation, `\t`, `\d \w \s \D \W \S` | one character |
/// | `[a-z_]`, `[^a-z]` | one character of a set |
/// | `^`, `$` | the start and the end of the name |
/// | `(x)`, `(?:x)`, `x\|y` | groups, alternatives |
/// | `x*`, `x+`, `x?`, `x{2}`, `x{2,}`, `x{2,5}` | repetition; a `?` behind it changes nothing |
public struct NamePattern: Sendable, Hashable, CustomStringConvertible {
  /// The longest pattern, in bytes.
  public static let maximumByteCount = 256

  /// The most steps of one pattern, and of all patterns of a token together.
  public static let maximumStepCount = 1024

  /// One step of the compiled pattern.
  enum Step: Sendable, Hashable {
    /// Takes one character of the set, and goes on to the next step.
    case take(CharacterSet)
    /// Goes on at two places.
    case fork(Int, Int)
    case jump(Int)
    case start
    case end
    case match
  }

  /// The pattern as it was given.
  public let text: String

  let steps: [Step]

  /// Compiles a pattern.
  ///
  /// - Throws: `invalidPattern` with the place of the fault.
  public init(_ text: String) throws(AccessError) {
    guard text.utf8.count <= Self.maximumByteCount else {
      throw AccessError(
        .invalidPattern, "a pattern has \(text.utf8.count) bytes",
        hint: "use at most \(Self.maximumByteCount)")
    }
    var compiler = PatternCompiler(text)
    self.steps = try compiler.compile()
    self.text = text
  }

  /// The pattern.
  public var description: String { text }

  /// Whether the pattern matches some part of a name.
  public func matches(_ name: String) -> Bool {
    var run = PatternRun(steps)
    return run.finds(in: name.unicodeScalars)
  }
}

/// A set of characters: ranges, or everything outside of them.
struct CharacterSet: Sendable, Hashable {
  var ranges: [ClosedRange<UInt32>]
  var isInverted = false

  func contains(_ scalar: Unicode.Scalar) -> Bool {
    ranges.contains { $0.contains(scalar.value) } != isInverted
  }

  static let any = CharacterSet(ranges: [], isInverted: true)

  /// The set of `\d`, `\w` or `\s`, and in upper case its opposite; nil for another letter.
  static func named(_ letter: Unicode.Scalar) -> CharacterSet? {
    switch letter {
    case "d": CharacterSet(ranges: [0x30...0x39])
    case "w": CharacterSet(ranges: [0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A])
    case "s": CharacterSet(ranges: [0x09...0x0A, 0x0C...0x0D, 0x20...0x20])
    case "D", "W", "S":
      named(Unicode.Scalar(UInt8(letter.value) + 0x20)).map {
        CharacterSet(ranges: $0.ranges, isInverted: true)
      }
    default: nil
    }
  }

  /// The ranges that the set holds.
  var heldRanges: [ClosedRange<UInt32>] {
    guard isInverted else { return ranges }
    var held: [ClosedRange<UInt32>] = []
    var next: UInt32 = 0
    for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
      if range.lowerBound > next { held.append(next...range.lowerBound - 1) }
      next = max(next, range.upperBound + 1)
    }
    return held + [next...0x10FFFF]
  }
}

/// The places of a pattern that are reached, as one name is read.
private struct PatternRun {
  private let steps: [NamePattern.Step]
  private var places: [Int] = []
  private var reached: [Int]
  private var pending: [Int] = []
  private var generation = 0
  private var isFound = false

  init(_ steps: [NamePattern.Step]) {
    self.steps = steps
    reached = Array(repeating: -1, count: steps.count)
  }

  mutating func finds(in name: String.UnicodeScalarView) -> Bool {
    var isAtStart = true
    var index = name.startIndex
    reach(0, isAtStart: true, isAtEnd: index == name.endIndex)
    while !isFound, index < name.endIndex {
      let scalar = name[index]
      index = name.index(after: index)
      let before = places
      places.removeAll(keepingCapacity: true)
      generation += 1
      isAtStart = false
      let isAtEnd = index == name.endIndex
      for place in before {
        if case .take(let set) = steps[place], set.contains(scalar) {
          reach(place + 1, isAtStart: isAtStart, isAtEnd: isAtEnd)
        }
      }
      // The search can begin at each character.
      reach(0, isAtStart: isAtStart, isAtEnd: isAtEnd)
    }
    return isFound
  }

  /// Adds a place, and those that follow it without a character.
  private mutating func reach(_ place: Int, isAtStart: Bool, isAtEnd: Bool) {
    pending.append(place)
    while let place = pending.popLast() {
      guard reached[place] != generation else { continue }
      reached[place] = generation
      switch steps[place] {
      case .take: places.append(place)
      case .fork(let first, let second): pending += [first, second]
      case .jump(let target): pending.append(target)
      case .start: if isAtStart { pending.append(place + 1) }
      case .end: if isAtEnd { pending.append(place + 1) }
      case .match: isFound = true
      }
    }
  }
}
