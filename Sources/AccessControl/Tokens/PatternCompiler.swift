/// Translates the text of a pattern to steps, by recursive descent.
struct PatternCompiler {
  private static let maximumDepth = 32
  private static let punctuation = CharacterSet(
    ranges: [0x21...0x2F, 0x3A...0x40, 0x5B...0x60, 0x7B...0x7E])

  private let scalars: [Unicode.Scalar]
  private var position = 0
  private var depth = 0

  init(_ text: String) { scalars = Array(text.unicodeScalars) }

  mutating func compile() throws(AccessError) -> [NamePattern.Step] {
    let steps = try alternatives()
    guard position == scalars.count else { throw fault("a ')' without a '('") }
    try check(steps.count + 1)
    return steps + [.match]
  }

  private var next: Unicode.Scalar? { position < scalars.count ? scalars[position] : nil }

  private func fault(_ what: String) -> AccessError {
    AccessError(
      .invalidPattern, "a pattern has \(what) at character \(position + 1)",
      hint: "docs/reference/access.md lists the syntax")
  }

  private func check(_ stepCount: Int) throws(AccessError) {
    guard stepCount <= NamePattern.maximumStepCount else {
      throw AccessError(
        .invalidPattern, "a pattern is too large",
        hint: "use fewer or smaller counts of repetition")
    }
  }

  private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
    guard next == scalar else { return false }
    position += 1
    return true
  }

  private mutating func alternatives() throws(AccessError) -> [NamePattern.Step] {
    var steps = try sequence()
    while take("|") {
      let other = try sequence()
      // fork to either; behind the first, over the second.
      steps =
        [.fork(1, steps.count + 2)] + steps.moved(by: 1) + [.jump(steps.count + 2 + other.count)]
        + other.moved(by: steps.count + 2)
      try check(steps.count)
    }
    return steps
  }

  private mutating func sequence() throws(AccessError) -> [NamePattern.Step] {
    var steps: [NamePattern.Step] = []
    while let scalar = next, scalar != "|", scalar != ")" {
      let item = try repeated(try atom())
      steps += item.moved(by: steps.count)
      try check(steps.count)
    }
    return steps
  }

  private mutating func atom() throws(AccessError) -> [NamePattern.Step] {
    guard let scalar = next else { throw fault("no character") }
    switch scalar {
    case "(": return try group()
    case "[": return [.take(try set())]
    case "*", "+", "?", "{": throw fault("a repetition of nothing")
    case "\\":
      position += 1
      return [.take(try escape())]
    default: break
    }
    position += 1
    return switch scalar {
    case "^": [.start]
    case "$": [.end]
    case ".": [.take(.any)]
    default: [.take(CharacterSet(ranges: [scalar.value...scalar.value]))]
    }
  }

  private mutating func group() throws(AccessError) -> [NamePattern.Step] {
    position += 1
    if take("?"), !take(":") { throw fault("a group of a kind that is not known here") }
    guard depth < Self.maximumDepth else { throw fault("too many groups within groups") }
    depth += 1
    let steps = try alternatives()
    depth -= 1
    guard take(")") else { throw fault("a '(' without its ')'") }
    return steps
  }

  /// The set of an escape, whose backslash has been read.
  private mutating func escape() throws(AccessError) -> CharacterSet {
    guard let scalar = next else { throw fault("a '\\' without a character") }
    if let set = CharacterSet.named(scalar) {
      position += 1
      return set
    }
    guard scalar == "t" || Self.punctuation.contains(scalar) else {
      throw fault("an escape that is not known here")
    }
    position += 1
    let value: UInt32 = scalar == "t" ? 9 : scalar.value
    return CharacterSet(ranges: [value...value])
  }

  private mutating func set() throws(AccessError) -> CharacterSet {
    position += 1
    var set = CharacterSet(ranges: [], isInverted: take("^"))
    var isFirst = true
    while isFirst || next != "]" {
      guard next != nil else { throw fault("a '[' without its ']'") }
      isFirst = false
      let low = try member()
      guard next == "-", position + 1 < scalars.count, scalars[position + 1] != "]" else {
        set.ranges += low
        continue
      }
      position += 1
      guard let first = single(low), let last = single(try member()), first <= last else {
        throw fault("a range without an order")
      }
      set.ranges.append(first...last)
    }
    position += 1
    return set
  }

  /// The ranges of one character or escape of a set.
  private mutating func member() throws(AccessError) -> [ClosedRange<UInt32>] {
    guard let scalar = next else { throw fault("a '[' without its ']'") }
    if scalar == "[", position + 1 < scalars.count, scalars[position + 1] == ":" {
      throw fault("a named class, which is not known here")
    }
    position += 1
    return scalar == "\\" ? try escape().heldRanges : [scalar.value...scalar.value]
  }

  private func single(_ ranges: [ClosedRange<UInt32>]) -> UInt32? {
    ranges.count == 1 && ranges[0].count == 1 ? ranges[0].lowerBound : nil
  }

  private mutating func repeated(
    _ item: [NamePattern.Step]
  ) throws(AccessError) -> [NamePattern.Step] {
    let least: Int
    let most: Int?
    switch next {
    case "*": (least, most) = (0, nil)
    case "+": (least, most) = (1, nil)
    case "?": (least, most) = (0, 1)
    case "{":
      position += 1
      (least, most) = try counts()
    default: return item
    }
    position += 1
    _ = take("?")
    if let next, "*+?{".unicodeScalars.contains(next) { throw fault("a repetition of nothing") }
    try check((item.count + 2) * max(least, most ?? (least + 1)))
    var steps: [NamePattern.Step] = []
    for _ in 0..<least { steps += item.moved(by: steps.count) }
    guard let most else {
      // fork to the item or behind it; behind the item, back to the fork.
      let start = steps.count
      steps.append(.fork(start + 1, start + item.count + 2))
      steps += item.moved(by: start + 1)
      return steps + [.jump(start)]
    }
    let end = steps.count + (most - least) * (item.count + 1)
    for _ in least..<most {
      steps.append(.fork(steps.count + 1, end))
      steps += item.moved(by: steps.count)
    }
    return steps
  }

  /// The numbers of a repetition, up to but without its `}`.
  private mutating func counts() throws(AccessError) -> (Int, Int?) {
    let least = try number()
    guard take(",") else {
      guard next == "}" else { throw fault("a '{' without its '}'") }
      return (least, least)
    }
    if next == "}" { return (least, nil) }
    let most = try number()
    guard next == "}", least <= most else { throw fault("counts without an order or a '}'") }
    return (least, most)
  }

  private mutating func number() throws(AccessError) -> Int {
    var number = 0
    let start = position
    while let scalar = next, let digit = Int(String(scalar)), scalar.isASCII {
      number = number * 10 + digit
      position += 1
      guard number <= NamePattern.maximumStepCount else { throw fault("too large a count") }
    }
    guard position > start else { throw fault("no count") }
    return number
  }
}

extension [NamePattern.Step] {
  /// The steps with all targets moved.
  fileprivate func moved(by distance: Int) -> [NamePattern.Step] {
    map { step in
      switch step {
      case .fork(let first, let second): .fork(first + distance, second + distance)
      case .jump(let target): .jump(target + distance)
      case .take, .start, .end, .match: step
      }
    }
  }
}
