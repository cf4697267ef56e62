/// A filter as a tree, made from bytes.
indirect enum FilterTree {
  case value(String)
  case unary(String, FilterTree)
  case binary(String, level: Int, FilterTree, FilterTree)

  /// The levels of docs/reference/pubnub-filters.md, the loosest first.
  private static let levels = [
    ["||"], ["&&"], ["==", "!=", "<", "<=", ">", ">=", "LIKE", "contains"], ["|", "^", "&"],
    ["+", "-"], ["*", "/", "%"],
  ]
  private static let values = [
    "a", "b", "n", "data.a", "data.list[1]", "data.n", "meta.list", "'a*'", "'text'", "0", "1",
    "2.5", "7", "true", "null", "(1, 'b')",
  ]

  init(_ bytes: inout ArraySlice<UInt8>, depth: Int) {
    let byte = Int(bytes.popFirst() ?? 0)
    switch byte & 3 {
    case 1 where depth > 0:
      self = .unary(["!", "-", "~"][(byte >> 2) % 3], FilterTree(&bytes, depth: depth - 1))
    case 2 where depth > 0, 3 where depth > 0:
      let level = (byte >> 2) % Self.levels.count
      let symbols = Self.levels[level]
      let left = FilterTree(&bytes, depth: depth - 1)
      self = .binary(
        symbols[(byte >> 5) % symbols.count], level: level, left,
        FilterTree(&bytes, depth: depth - 1))
    default: self = .value(Self.values[(byte >> 2) % Self.values.count])
    }
  }

  /// With the parentheses that a place of this level needs.
  func text(level: Int) -> String {
    switch self {
    case .value(let text): return text
    case .unary(let symbol, let operand): return symbol + operand.text(level: Self.levels.count)
    case .binary(let symbol, let own, let left, let right):
      // Comparisons do not group.
      let text =
        "\(left.text(level: own == 2 ? 3 : own)) \(symbol) \(right.text(level: own + 1))"
      return own < level ? "(\(text))" : text
    }
  }

  var fullText: String {
    switch self {
    case .value(let text): "(\(text))"
    case .unary(let symbol, let operand): "(\(symbol)\(operand.fullText))"
    case .binary(let symbol, _, let left, let right):
      "(\(left.fullText) \(symbol) \(right.fullText))"
    }
  }
}
