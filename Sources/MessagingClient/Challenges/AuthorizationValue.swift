internal import VaultCrypto

/// Makes values of the field `Authorization` in memory that is wiped.
///
/// This file faces pointers, so that no copy of a password is in an array or a string.
enum AuthorizationValue {
  /// The longest value in bytes, which fits a ticket of Kerberos.
  static let maximumByteCount = 100_000

  /// A scheme, and a user and a password in base64 (RFC 7617, 2).
  static func basic(
    _ scheme: Challenge.Scheme, user: borrowing SecretBytes, password: borrowing SecretBytes
  ) throws(AuthenticationError) -> SecretBytes {
    let byteCount = user.byteCount + 1 + password.byteCount
    guard byteCount <= BasicChallengeHandler.maximumByteCount else {
      throw .invalidCredentials(
        "a user and a password have at most \(BasicChallengeHandler.maximumByteCount) bytes together"
      )
    }
    guard user.isText else {
      throw .invalidCredentials("a user is UTF-8 without control characters")
    }
    guard user.allBytes({ $0 != UInt8(ascii: ":") }) else {
      throw .invalidCredentials("a user of Basic has no colon")
    }
    guard password.isText else {
      throw .invalidCredentials("a password is UTF-8 without control characters")
    }
    let pair = unsafe SecretBytes(byteCount: byteCount) { target in
      unsafe user.withUnsafeBytes { unsafe target.copyMemory(from: $0) }
      unsafe target[user.byteCount] = UInt8(ascii: ":")
      let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: target[(user.byteCount + 1)...])
      unsafe password.withUnsafeBytes { unsafe rest.copyMemory(from: $0) }
    }
    return pair.withBytes { base64(scheme, $0) }
  }

  /// A scheme, and a token that is a token68 (RFC 9110, 11.2).
  static func token(
    _ scheme: Challenge.Scheme, _ token: borrowing SecretBytes
  ) throws(AuthenticationError) -> SecretBytes {
    var isPadding = false
    let isToken =
      token.byteCount > 0 && token.byteCount <= TokenChallengeHandler.maximumByteCount
      && token.allBytes { byte in
        if byte == UInt8(ascii: "=") { isPadding = true }
        return isPadding ? byte == UInt8(ascii: "=") : ChallengeReader.isToken68Byte(byte)
      }
    guard isToken, token.withBytes({ $0.first }) != UInt8(ascii: "=") else {
      throw .invalidCredentials(
        "a token has 1 to \(TokenChallengeHandler.maximumByteCount) letters, digits and -._~+/, and = at its end"
      )
    }
    let prefix = Array("\(scheme) ".utf8)
    return unsafe SecretBytes(byteCount: prefix.count + token.byteCount) { target in
      unsafe target.copyBytes(from: prefix)
      let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: target[prefix.count...])
      unsafe token.withUnsafeBytes { unsafe rest.copyMemory(from: $0) }
    }
  }

  /// A scheme, and bytes in base64 with padding (RFC 4648, section 4).
  static func base64(_ scheme: Challenge.Scheme, _ bytes: RawSpan) -> SecretBytes {
    let prefix = Array("\(scheme) ".utf8)
    let byteCount = prefix.count + (bytes.byteCount + 2) / 3 * 4
    return unsafe SecretBytes(byteCount: byteCount) { target in
      unsafe target.copyBytes(from: prefix)
      unsafe bytes.withUnsafeBytes { source in
        var position = prefix.count
        for start in stride(from: 0, to: source.count, by: 3) {
          let second = start + 1 < source.count ? unsafe source[start + 1] : nil
          let third = start + 2 < source.count ? unsafe source[start + 2] : nil
          let group =
            unsafe UInt32(source[start]) << 16 | UInt32(second ?? 0) << 8 | UInt32(third ?? 0)
          unsafe target[position] = digit(group >> 18)
          unsafe target[position + 1] = digit(group >> 12)
          unsafe target[position + 2] = second == nil ? UInt8(ascii: "=") : digit(group >> 6)
          unsafe target[position + 3] = third == nil ? UInt8(ascii: "=") : digit(group)
          position += 4
        }
      }
    }
  }

  /// The bytes of base64 with padding; nil for everything else.
  static func decodeBase64(_ text: String) -> [UInt8]? {
    guard text.utf8.count.isMultiple(of: 4) else { return nil }
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while !rest.isEmpty {
      let group = rest.prefix(4)
      rest = rest.dropFirst(4)
      let padding = rest.isEmpty ? group.reversed().prefix { $0 == UInt8(ascii: "=") }.count : 0
      guard padding <= 2 else { return nil }
      var number: UInt32 = 0
      for character in group.dropLast(padding) {
        guard let value = value(character) else { return nil }
        number = number << 6 | value
      }
      number <<= 6 * UInt32(padding)
      // The bits that padding leaves are zero, so that a text has one form.
      guard number & ((1 << (8 * UInt32(padding))) - 1) == 0 else { return nil }
      bytes += [UInt8(number >> 16), UInt8(number >> 8 & 0xFF), UInt8(number & 0xFF)].dropLast(
        padding)
    }
    return bytes
  }

  /// Whether a value can be a field: visible ASCII characters, with single spaces inside.
  static func isField(_ value: borrowing SecretBytes) -> Bool {
    var last = UInt8(ascii: " ")
    let isVisible = value.allBytes { byte in
      defer { last = byte }
      return byte == 0x20 ? last != 0x20 : (0x21...0x7E).contains(byte)
    }
    return isVisible && last != 0x20 && value.byteCount <= maximumByteCount
  }

  /// A digit of base64, found by arithmetic: an index into a table would depend on the secret.
  private static func digit(_ bits: UInt32) -> UInt8 {
    let value = Int32(bits & 0x3F)
    // Each term is the distance to the next range of characters, or zero.
    var character = value + 0x41
    character += ((25 - value) >> 31) & 6
    character -= ((51 - value) >> 31) & 75
    character -= ((61 - value) >> 31) & 15
    character += ((62 - value) >> 31) & 3
    return UInt8(truncatingIfNeeded: character)
  }

  private static func value(_ character: UInt8) -> UInt32? {
    switch character {
    case 0x41...0x5A: UInt32(character) - 0x41
    case 0x61...0x7A: UInt32(character) - 0x61 + 26
    case 0x30...0x39: UInt32(character) - 0x30 + 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}

extension RawSpan {
  fileprivate var first: UInt8? {
    byteCount > 0 ? unsafe unsafeLoad(fromByteOffset: 0, as: UInt8.self) : nil
  }
}

extension SecretBytes {
  /// Whether a test is true for all bytes.
  fileprivate borrowing func allBytes(_ test: (UInt8) -> Bool) -> Bool {
    withBytes { bytes in
      (0..<bytes.byteCount).allSatisfy {
        test(unsafe bytes.unsafeLoad(fromByteOffset: $0, as: UInt8.self))
      }
    }
  }

  /// Whether the bytes are UTF-8 without control characters.
  fileprivate var isText: Bool {
    guard allBytes({ $0 >= 0x20 && $0 != 0x7F }) else { return false }
    return withBytes { bytes in
      do {
        _ = try UTF8Span(validating: Span(_bytes: bytes))
        return true
      } catch {
        return false
      }
    }
  }

  /// The part behind the last space: the credentials of a value without its scheme.
  var credentialsRange: Range<Int> {
    let start = withBytes { bytes in
      (0..<bytes.byteCount).last {
        unsafe bytes.unsafeLoad(fromByteOffset: $0, as: UInt8.self) == 0x20
      }
    }
    return (start.map { $0 + 1 } ?? 0)..<byteCount
  }
}
