/// The pattern of a `LIKE`: text with `*` for any characters, without regard to case.
struct FilterPattern: Sendable {
  /// What is between the stars, in small letters; one part if there is no star.
  private let parts: [[UInt8]]

  /// - Parameter raw: the pattern as it was written. A backslash takes the next character literally.
  init(_ raw: some Collection<UInt8>) {
    var parts: [[UInt8]] = [[]]
    var isEscaped = false
    for byte in raw {
      if !isEscaped, byte == UInt8(ascii: "\\") {
        isEscaped = true
      } else if !isEscaped, byte == UInt8(ascii: "*") {
        parts.append([])
      } else {
        parts[parts.count - 1].append(byte)
        isEscaped = false
      }
    }
    self.parts = parts.map { Self.folded(String(decoding: $0, as: UTF8.self)) }
  }

  /// The text that a string stands for: each backslash takes the next character literally.
  static func text(_ raw: [UInt8]) -> String {
    var text: [UInt8] = []
    var isEscaped = false
    for byte in raw {
      isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
      if !isEscaped { text.append(byte) }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Whether the pattern matches the whole text, in time in proportion to both.
  func matches(_ text: String) -> Bool {
    let text = Self.folded(text)
    guard parts.count > 1, let first = parts.first, let last = parts.last else {
      return text == parts[0]
    }
    guard text.count >= first.count + last.count, text.starts(with: first),
      text.suffix(last.count).elementsEqual(last)
    else { return false }
    // The leftmost place of each part leaves the most room for the next ones.
    var rest = text[first.count..<text.count - last.count]
    for part in parts[1..<parts.count - 1] {
      guard let end = Self.end(of: part, in: rest) else { return false }
      rest = rest[end...]
    }
    return true
  }

  /// The end of the first place of a part in a text, by Knuth, Morris and Pratt.
  static func end(of part: [UInt8], in text: ArraySlice<UInt8>) -> Int? {
    if part.isEmpty { return text.startIndex }
    /// For each beginning of the part: how much of it ends that beginning too.
    var borders = [0]
    for byte in part.dropFirst() {
      var length = borders[borders.count - 1]
      while length > 0, part[length] != byte { length = borders[length - 1] }
      borders.append(part[length] == byte ? length + 1 : 0)
    }
    var length = 0
    for index in text.indices {
      while length > 0, part[length] != text[index] { length = borders[length - 1] }
      if part[length] == text[index] { length += 1 }
      if length == part.count { return index + 1 }
    }
    return nil
  }

  /// The text in small letters, each character on its own.
  private static func folded(_ text: String) -> [UInt8] {
    var folded: [UInt8] = []
    folded.reserveCapacity(text.utf8.count)
    for scalar in text.unicodeScalars {
      if scalar.isASCII {
        let byte = UInt8(truncatingIfNeeded: scalar.value)
        folded.append(UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte + 0x20 : byte)
      } else {
        folded += scalar.properties.lowercaseMapping.utf8
      }
    }
    return folded
  }
}
