internal import StrictJSON

/// Percent-encoding of paths and queries, as PubNub's SDKs use it; `+` is a plus.
package enum PercentEncoding {
  /// Replaces each escape by its byte; a `%` without two digits stays.
  package static func decode(_ text: some Collection<UInt8>) -> [UInt8] {
    var decoded: [UInt8] = []
    decoded.reserveCapacity(text.count)
    var rest = Array(text)[...]
    while let mark = rest.firstIndex(of: UInt8(ascii: "%")) {
      decoded += rest[..<mark]
      rest = rest[(mark + 1)...]
      if rest.count >= 2, let high = rest[rest.startIndex].hexadecimalDigit,
        let low = rest[rest.startIndex + 1].hexadecimalDigit
      {
        decoded.append(high << 4 | low)
        rest = rest.dropFirst(2)
      } else {
        decoded.append(UInt8(ascii: "%"))
      }
    }
    decoded += rest
    return decoded
  }

  /// Escapes every byte but `A-Z a-z 0-9 - _ .`, with digits in upper case: the form that
  /// signatures cover.
  static func encode(_ bytes: some Collection<UInt8>) -> [UInt8] {
    let digits = Array("0123456789ABCDEF".utf8)
    var encoded: [UInt8] = []
    encoded.reserveCapacity(bytes.count)
    for byte in bytes {
      if byte.isUnreserved {
        encoded.append(byte)
      } else {
        encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 0xF)]]
      }
    }
    return encoded
  }
}
