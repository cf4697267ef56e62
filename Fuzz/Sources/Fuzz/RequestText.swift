import Foundation

/// The target of a request, taken apart and written in other ways.
struct RequestText {
  /// How the bytes of a name are written.
  enum Style: UInt8 {
    /// Only what would end the name.
    case short
    /// All but letters, digits and `-_.`, in small and in capital letters.
    case small, capital
    /// Every byte.
    case long

    func encode(_ bytes: [UInt8]) -> [UInt8] {
      bytes.flatMap { byte in
        let isKept =
          switch self {
          case .short: !"%/,?&=".utf8.contains(byte)
          case .small, .capital: RequestText.isUnreserved(byte)
          case .long: false
          }
        return isKept ? [byte] : RequestText.escape(byte, uppercase: self != .small)
      }
    }
  }

  /// The parts of the path, still encoded.
  let parts: [ArraySlice<UInt8>]
  private let target: [UInt8]
  private let path: ArraySlice<UInt8>
  private let pieces: [ArraySlice<UInt8>]

  init(_ target: [UInt8]) {
    self.target = target
    path = target.prefix { $0 != UInt8(ascii: "?") }
    parts = path.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    pieces = target[path.endIndex...].dropFirst().split(separator: UInt8(ascii: "&"))
  }

  func word(_ index: Int) -> String {
    index < parts.count ? String(decoding: parts[index], as: UTF8.self) : ""
  }

  /// The value of the first parameter with a name, still encoded; nil if there is none.
  func value(_ name: String) -> ArraySlice<UInt8>? {
    pieces.first { $0.prefix { $0 != UInt8(ascii: "=") }.elementsEqual(name.utf8) }
      .map { $0.drop { $0 != UInt8(ascii: "=") }.dropFirst() }
  }

  /// What Foundation decodes; nil for what it refuses: half an escape, and what is no UTF-8.
  static func decoded(_ text: ArraySlice<UInt8>) -> String? {
    String(validating: text, as: UTF8.self)?.removingPercentEncoding
  }

  /// The same in other bytes: what is escaped stays so, in capital letters, and all else becomes so.
  ///
  /// An escape of a letter stays, because a word of the API has none.
  var encodedAgain: [UInt8] {
    var written = Self.encodedAgain(path, keeping: "/,")
    guard path.endIndex < target.endIndex else { return written }
    written.append(UInt8(ascii: "?"))
    for (index, piece) in pieces.enumerated() {
      let name = piece.prefix { $0 != UInt8(ascii: "=") }
      if index > 0 { written.append(UInt8(ascii: "&")) }
      written += name
      guard name.endIndex < piece.endIndex else { continue }
      written.append(UInt8(ascii: "="))
      written += Self.encodedAgain(piece[name.endIndex...].dropFirst(), keeping: "")
    }
    return written
  }

  /// The same with parameters that are not known, and the first two again with another value.
  var withMoreParameters: [UInt8] {
    var written = target
    written += (path.endIndex < target.endIndex ? "&&" : "?").utf8
    written += "fuzz=1&".utf8
    for piece in pieces.prefix(2) {
      written += piece.prefix { $0 != UInt8(ascii: "=") }
      written += "=%FF&".utf8
    }
    return written
  }

  private static func encodedAgain(_ text: ArraySlice<UInt8>, keeping kept: String) -> [UInt8] {
    var written: [UInt8] = []
    var rest = text
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), rest.count >= 2, rest.prefix(2).allSatisfy(isDigit) {
        written += Array("%".utf8) + rest.prefix(2).map { $0 >= 0x61 ? $0 - 0x20 : $0 }
        rest = rest.dropFirst(2)
      } else if isUnreserved(byte) || kept.utf8.contains(byte) {
        written.append(byte)
      } else {
        written += escape(byte, uppercase: true)
      }
    }
    return written
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    "0123456789abcdefABCDEF".utf8.contains(byte)
  }

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: "-_.".utf8.contains(byte)
    }
  }

  private static func escape(_ byte: UInt8, uppercase: Bool) -> [UInt8] {
    let digits = String(byte, radix: 16, uppercase: uppercase)
    return Array("%\(byte < 16 ? "0" : "")\(digits)".utf8)
  }
}
