internal import CSodium
internal import VaultCrypto

/// Standard base64 with padding (RFC 4648, section 4), in one form for each sequence of bytes.
///
/// libsodium codes it by arithmetic, without a table that is indexed by a secret.
///
/// https://doc.libsodium.org/helpers#base64-encoding-decoding
enum Base64 {
  private static let variant = Int32(sodium_base64_VARIANT_ORIGINAL)

  /// The text of bytes that are not secret.
  static func text(_ bytes: [UInt8]) -> [UInt8] {
    var text = [CChar](repeating: 0, count: textByteCount(bytes.count) + 1)
    unsafe sodium_bin2base64(&text, text.count, bytes, bytes.count, variant)
    return text.dropLast().map { UInt8(bitPattern: $0) }
  }

  /// The bytes of a text; nil for everything else than ``text(_:)`` gives.
  static func bytes(_ text: [UInt8]) -> [UInt8]? {
    if text.isEmpty { return [] }
    var bytes = [UInt8](repeating: 0, count: text.count / 4 * 3)
    let capacity = bytes.count
    let count = unsafe text.withUnsafeBytes { text in
      unsafe bytes.withUnsafeMutableBytes { unsafe decode(text, into: $0, capacity) }
    }
    return count.map { Array(bytes.prefix($0)) }
  }

  /// The text of a secret.
  static func text(of secret: borrowing SecretBytes) -> SecretBytes {
    let byteCount = textByteCount(secret.byteCount)
    // libsodium ends the text with a zero byte.
    let ended = unsafe SecretBytes(byteCount: byteCount + 1) { target in
      unsafe secret.withUnsafeBytes { secret in
        guard let start = unsafe target.bindMemory(to: CChar.self).baseAddress else { return }
        _ = unsafe sodium_bin2base64(
          start, target.count, secret.bindMemory(to: UInt8.self).baseAddress, secret.count, variant)
      }
    }
    return ended.copy(0..<byteCount)
  }

  /// A secret of a known length from its text; nil for another text.
  static func secret(_ text: borrowing SecretBytes, byteCount: Int) -> SecretBytes? {
    guard text.byteCount == textByteCount(byteCount) else { return nil }
    var count: Int?
    let secret = unsafe SecretBytes(byteCount: byteCount) { target in
      count = unsafe text.withUnsafeBytes { unsafe decode($0, into: target, byteCount) }
    }
    return count == byteCount ? consume secret : nil
  }

  private static func textByteCount(_ byteCount: Int) -> Int { (byteCount + 2) / 3 * 4 }

  private static func decode(
    _ text: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer, _ capacity: Int
  ) -> Int? {
    guard let start = unsafe target.bindMemory(to: UInt8.self).baseAddress else { return nil }
    var count = 0
    // Without a pointer to the text's end, libsodium refuses what follows the base64.
    let status = unsafe sodium_base642bin(
      start, capacity, text.bindMemory(to: CChar.self).baseAddress, text.count, nil, &count, nil,
      variant)
    return status == 0 ? count : nil
  }
}
