/// A line of a client, without its newline.
struct Line: Equatable {
  var bytes: [UInt8]
  /// Whether the line was longer than the limit and was truncated.
  var isCut = false
}

/// Assembles lines from the pieces that arrive.
///
/// A line without its newline is discarded, for example if a client dies. The rest of a line that
/// is too long is skipped up to its newline and not kept in memory.
struct LineBuffer {
  private let maximumByteCount: Int
  private var line = Line(bytes: [])

  init(maximumByteCount: Int) {
    self.maximumByteCount = maximumByteCount
  }

  /// Adds a piece and returns the lines that it completes.
  mutating func take(_ piece: some Collection<UInt8>) -> [Line] {
    var lines: [Line] = []
    var rest = piece[...]
    while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
      append(rest[..<end])
      lines.append(line)
      line = Line(bytes: [])
      rest = rest[end...].dropFirst()
    }
    append(rest)
    return lines
  }

  private mutating func append(_ bytes: some Collection<UInt8>) {
    let room = maximumByteCount - line.bytes.count
    if bytes.count > room { line.isCut = true }
    line.bytes += bytes.prefix(room)
  }
}
