internal import VaultCrypto

/// Writes bytes into a secret of exactly their length: the same closure runs twice, first to count.
@safe struct ByteWriter {
  private let target: UnsafeMutableRawBufferPointer?
  private(set) var byteCount = 0

  private init(target: UnsafeMutableRawBufferPointer?) {
    unsafe self.target = target
  }

  /// The number of bytes that `body` writes.
  static func count(_ body: (inout ByteWriter) -> Void) -> Int {
    var counter = unsafe ByteWriter(target: nil)
    body(&counter)
    return counter.byteCount
  }

  /// A secret with the bytes that `body` writes; `body` must write the same bytes each time.
  static func secret(_ body: (inout ByteWriter) -> Void) -> SecretBytes {
    unsafe SecretBytes(byteCount: count(body)) { target in
      var writer = unsafe ByteWriter(target: target)
      body(&writer)
    }
  }

  mutating func append(_ byte: UInt8) {
    if let target = unsafe target { unsafe target[byteCount] = byte }
    byteCount += 1
  }

  mutating func append(_ secret: borrowing SecretBytes) {
    if let target = unsafe target {
      unsafe secret.withUnsafeBytes { source in
        unsafe UnsafeMutableRawBufferPointer(rebasing: target[byteCount...])
          .copyMemory(from: source)
      }
    }
    byteCount += secret.byteCount
  }

  /// Appends text that is not secret: punctuation, names of members, numbers.
  mutating func append(_ text: String) {
    for byte in text.utf8 { append(byte) }
  }

  /// Appends bytes as a JSON string of base64url.
  mutating func appendBase64URL(_ bytes: RawSpan, _ range: Range<Int>) {
    append(UInt8(ascii: "\""))
    if let target = unsafe target {
      let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: target[byteCount...])
      _ = unsafe Base64URL.encode(bytes, range, into: rest)
    }
    byteCount += Base64URL.encodedCount(range.count)
    append(UInt8(ascii: "\""))
  }

  mutating func appendBase64URL(_ secret: borrowing SecretBytes) {
    secret.withBytes { appendBase64URL($0, 0..<$0.byteCount) }
  }

  /// Appends UTF-8 text as a JSON string and escapes only the characters that need it.
  mutating func appendJSONString(_ bytes: RawSpan, _ range: Range<Int>) {
    append(UInt8(ascii: "\""))
    for offset in range {
      let byte = bytes.byte(offset)
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"):
        append(UInt8(ascii: "\\"))
        append(byte)
      case 0..<0x20:
        append("\\u00")
        append(hexDigit(byte >> 4))
        append(hexDigit(byte & 0xF))
      default: append(byte)
      }
    }
    append(UInt8(ascii: "\""))
  }

  private func hexDigit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }
}
