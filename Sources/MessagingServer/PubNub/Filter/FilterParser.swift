internal import StrictJSON

/// Parses a filter by recursive descent, within the bounds of ``FilterExpression``.
struct FilterParser {
  private(set) var readsPayload = false

  private let bytes: [UInt8]
  private var position = 0
  private var nodeCount = 0

  init(_ text: String) { bytes = Array(text.utf8) }

  /// The filter; nil if the text is empty.
  mutating func parse() throws(FilterFault) -> FilterNode? {
    guard bytes.count <= FilterExpression.maximumByteCount else {
      throw FilterFault(reason: .tooLong, offset: FilterExpression.maximumByteCount)
    }
    skipSpace()
    guard position < bytes.count else { return nil }
    let root = try expression(level: 0, depth: 0)
    skipSpace()
    guard position == bytes.count else { throw fault(.missingOperator) }
    return root
  }

  // MARK: Expressions

  /// Operands with operators of at least this level between them.
  private mutating func expression(level: Int, depth: Int) throws(FilterFault) -> FilterNode {
    var left = try operand(depth: depth)
    while let found = nextOperator(), found.level >= level {
      try count()
      position += found.symbol.utf8.count
      left = .binary(found, left, try expression(level: found.level + 1, depth: depth))
      if found.isComparison, nextOperator()?.isComparison == true {
        throw fault(.chainedComparison)
      }
    }
    return left
  }

  private mutating func operand(depth: Int) throws(FilterFault) -> FilterNode {
    skipSpace()
    try count()
    guard depth <= FilterExpression.maximumDepth else { throw fault(.tooDeep) }
    switch next {
    case UInt8(ascii: "!"): return try unary(.not, depth)
    case UInt8(ascii: "-"): return try unary(.minus, depth)
    case UInt8(ascii: "~"): return try unary(.complement, depth)
    case UInt8(ascii: "("): return try parentheses(depth)
    case UInt8(ascii: "\""), UInt8(ascii: "'"):
      let raw = try quoted()
      return .text(FilterPattern.text(raw), FilterPattern(raw))
    case .some(let byte) where byte.isDigit: return .constant(try number())
    case .some(let byte) where byte.beginsName: return try member()
    default: throw fault(.missingOperand)
    }
  }

  private mutating func unary(
    _ operation: FilterUnary, _ depth: Int
  ) throws(FilterFault) -> FilterNode {
    position += 1
    return .unary(operation, try operand(depth: depth + 1))
  }

  private mutating func parentheses(_ depth: Int) throws(FilterFault) -> FilterNode {
    var nodes: [FilterNode] = []
    repeat {
      position += 1
      nodes.append(try expression(level: 0, depth: depth + 1))
      skipSpace()
    } while next == UInt8(ascii: ",")
    guard next == UInt8(ascii: ")") else { throw fault(.missingParenthesis) }
    position += 1
    return nodes.count == 1 ? nodes[0] : .list(nodes)
  }

  /// The operator that begins here, behind white space.
  private mutating func nextOperator() -> FilterBinary? {
    skipSpace()
    return FilterBinary.allCases.first { candidate in
      let symbol = candidate.symbol.utf8
      guard bytes[position...].prefix(symbol.count).elementsEqual(symbol, by: { $0.upper == $1 })
      else { return false }
      // `likeness` is a name.
      let end = position + symbol.count
      return candidate.symbol.utf8.first?.beginsName != true || end == bytes.count
        || !bytes[end].continuesName
    }
  }

  // MARK: Operands

  private mutating func member() throws(FilterFault) -> FilterNode {
    let first = name()
    var steps: [FilterStep] = []
    while next == UInt8(ascii: ".") || next == UInt8(ascii: "[") {
      try count()
      let isName = next == UInt8(ascii: ".")
      position += 1
      if !isName {
        steps.append(try index())
      } else if next?.beginsName == true {
        steps.append(.name(name()))
      } else {
        throw fault(.missingName)
      }
    }
    switch first {
    case "true" where steps.isEmpty: return .constant(.boolean(true))
    case "false" where steps.isEmpty: return .constant(.boolean(false))
    case "null" where steps.isEmpty: return .constant(.null)
    case "data":
      readsPayload = true
      return .member(.payload, steps)
    case "meta": return .member(.meta, steps)
    default: return .member(.meta, [.name(first)] + steps)
    }
  }

  private mutating func name() -> String {
    let start = position
    while next?.continuesName == true { position += 1 }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  /// What is behind an opening bracket.
  private mutating func index() throws(FilterFault) -> FilterStep {
    skipSpace()
    let step: FilterStep
    if next == UInt8(ascii: "\"") || next == UInt8(ascii: "'") {
      step = .name(FilterPattern.text(try quoted()))
    } else {
      let start = position
      while next?.isDigit == true { position += 1 }
      guard let index = Int(String(decoding: bytes[start..<position], as: UTF8.self)) else {
        throw FilterFault(reason: .invalidIndex, offset: start)
      }
      step = .index(index)
    }
    skipSpace()
    guard next == UInt8(ascii: "]") else { throw fault(.missingBracket) }
    position += 1
    return step
  }

  /// The bytes between quotes, of which one behind a backslash is not the end.
  private mutating func quoted() throws(FilterFault) -> [UInt8] {
    let start = position
    let quote = next
    position += 1
    while let byte = next, byte != quote { position += byte == UInt8(ascii: "\\") ? 2 : 1 }
    guard position < bytes.count else {
      throw FilterFault(reason: .unterminatedText, offset: start)
    }
    position += 1
    return Array(bytes[start + 1..<position - 1])
  }

  private mutating func number() throws(FilterFault) -> JSONValue {
    let start = position
    // The sign of an exponent belongs to the number.
    while let byte = next {
      let isSign = byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-")
      guard
        byte.continuesName || byte == UInt8(ascii: ".")
          || isSign && bytes[position - 1].upper == UInt8(ascii: "E")
      else { break }
      position += 1
    }
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    // Only what JSON takes: no `1.`, no `0x10`, no leading zeros.
    guard let value = try? JSONReader.value(Array(text.utf8)) else {
      throw FilterFault(reason: .invalidNumber, offset: start)
    }
    return value
  }

  // MARK: Bytes

  private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func skipSpace() {
    while let byte = next, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D {
      position += 1
    }
  }

  private mutating func count() throws(FilterFault) {
    nodeCount += 1
    guard nodeCount <= FilterExpression.maximumNodeCount else { throw fault(.tooManyNodes) }
  }

  private func fault(_ reason: FilterFault.Reason) -> FilterFault {
    FilterFault(reason: reason, offset: position)
  }
}

extension UInt8 {
  fileprivate var isDigit: Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= self }

  fileprivate var beginsName: Bool {
    UInt8(ascii: "A")...UInt8(ascii: "Z") ~= upper || self == UInt8(ascii: "_") || self >= 0x80
  }

  fileprivate var continuesName: Bool { beginsName || isDigit }

  fileprivate var upper: UInt8 {
    UInt8(ascii: "a")...UInt8(ascii: "z") ~= self ? self - 0x20 : self
  }
}
