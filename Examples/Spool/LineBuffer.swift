/// What a client has sent, without its newline.
struct Line: Equatable {
  var bytes: [UInt8]
  /// Whether it was longer than is taken, and has lost its end.
  var isCut = false
}

/// Makes lines of the pieces in which they arrive.
///
/// A line ends with its newline: a client that dies in the middle of one has sent none. What is too long is
/// not kept in memory, but passed over up to its newline.
struct LineBuffer {
  private let maximumByteCount: Int
  private var line = Line(bytes: [])

  init(maximumByteCount: Int) {
    self.maximumByteCount = maximumByteCount
  }

  /// The lines that this piece completes.
  mutating func take(_ piece: ArraySlice<UInt8>) -> [Line] {
    var lines: [Line] = []
    var rest = piece
    while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
      append(rest[..<end])
      lines.append(line)
      line = Line(bytes: [])
      rest = rest[(end + 1)...]
    }
    append(rest)
    return lines
  }

  private mutating func append(_ bytes: ArraySlice<UInt8>) {
    let room = maximumByteCount - line.bytes.count
    if bytes.count > room { line.isCut = true }
    line.bytes += bytes.prefix(room)
  }
}
