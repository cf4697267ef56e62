import TestSupport

/// A random location or pattern, as its tokens and as a text.
struct RandomLocation {
  /// From the first label of the text to the last.
  var host: [String]
  var port: String?
  var userInfo: [String]
  var path: [String]

  var text: String {
    let user = userInfo.isEmpty ? "" : userInfo.joined(separator: ":") + "@"
    let port = port.map { ":\($0)" } ?? ""
    return user + host.joined(separator: ".") + port + path.map { "/\($0)" }.joined()
  }

  /// The kinds of Kaazing's tree in its order.
  var tokens: [(kind: Int, name: String)] {
    host.reversed().map { (0, $0) } + [(1, port ?? "80")] + userInfo.map { (2, $0) }
      + path.map { (3, $0) }
  }

  static func location(_ random: inout SeededRandom) -> RandomLocation {
    RandomLocation(
      host: (0...random.next(3)).map { _ in ["a", "b", "c"][random.next(3)] },
      port: [nil, "80", "8000"][random.next(3)],
      userInfo: (0..<max(0, random.next(5) - 2)).map { _ in ["u", "v"][random.next(2)] },
      path: (0..<random.next(5)).map { _ in ["x", "y"][random.next(2)] })
  }

  /// A pattern that often matches: the location with some tokens replaced, added and removed.
  static func pattern(_ random: inout SeededRandom, near location: RandomLocation) -> RandomLocation
  {
    var pattern = location
    if random.oneIn(4) { pattern = Self.location(&random) }
    if random.oneIn(3) {
      let kept = random.next(pattern.host.count)
      pattern.host = ["*"] + pattern.host.suffix(kept)
    }
    if random.oneIn(3) { pattern.port = "*" }
    if !pattern.userInfo.isEmpty, random.oneIn(3) { pattern.userInfo = ["*"] }
    if random.oneIn(2) {
      pattern.path = pattern.path.prefix(random.next(pattern.path.count + 1)) + ["*"]
      while random.oneIn(4) { pattern.path.append("*") }
    }
    for part in [\RandomLocation.host, \.path, \.userInfo]
    where !pattern[keyPath: part].isEmpty && random.oneIn(6) {
      pattern[keyPath: part][random.next(pattern[keyPath: part].count)] = "*"
    }
    return pattern
  }
}

/// The tree of Kaazing's DispatchChallengeHandler with one pattern in it, as a chain of nodes.
struct KaazingTree {
  let nodes: [(kind: Int, name: String)]

  init(_ pattern: RandomLocation) { nodes = pattern.tokens }

  func matches(_ location: RandomLocation) -> Bool { matches(location.tokens, from: 0, at: 0) }

  private func matches(_ tokens: [(kind: Int, name: String)], from first: Int, at index: Int)
    -> Bool
  {
    guard index < nodes.count, first < tokens.count else { return false }
    let node = nodes[index]
    var next = first
    if node == tokens[first] {
      next += 1
    } else {
      guard node.name == "*", node.kind == tokens[first].kind else { return false }
      while next < tokens.count, tokens[next].kind == node.kind { next += 1 }
    }
    guard next == tokens.count else { return matches(tokens, from: next, at: index + 1) }
    // All tokens are matched: wildcards below match nothing if they are of the kind of this node's parent.
    var last = index
    while last < nodes.count {
      if last == nodes.count - 1 { return true }
      guard nodes[last + 1].name == "*", index > 0, nodes[last + 1].kind == nodes[index - 1].kind
      else { return false }
      last += 1
    }
    return false
  }
}
