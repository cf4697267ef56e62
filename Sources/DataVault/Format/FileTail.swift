internal import VaultCrypto

/// The last 56 bytes of a file: the member `digest`, the closing brace and a line feed.
///
/// It tells a damaged file from a wrong password, and one state of a vault from another.
struct FileTail: Sendable, Equatable {
  static let byteCount = 56
  private static let opening = Array("\"digest\":\"".utf8)
  private static let closing = Array("\"}\n".utf8)

  let bytes: [UInt8]

  /// The tail that belongs behind these bytes.
  init(following head: [UInt8]) throws(CryptoError) {
    self.init(digest: try SHA256.digest(unsafe head.span.bytes))
  }

  /// The last bytes of a file, unchecked.
  init(of file: [UInt8]) {
    bytes = Array(file.suffix(Self.byteCount))
  }

  private init(digest: [UInt8]) {
    bytes = Self.opening + Base64URL.encode(digest) + Self.closing
  }

  /// The tail of a file whose digest fits.
  init(verifying file: [UInt8]) throws(FormatFault) {
    let part = "digest"
    guard file.count > Self.byteCount else { throw FormatFault(part, "the file is cut short") }
    let bytes = unsafe file.span.bytes
    let start = file.count - Self.byteCount
    guard bytes.hasBytes(Self.opening, at: start),
      bytes.hasBytes(Self.closing, at: file.count - Self.closing.count)
    else { throw FormatFault(part, "the file is cut short, or not a vault") }
    self.init(digest: try Self.digest(bytes.extracting(0..<start)))
    guard bytes.hasBytes(self.bytes, at: start) else {
      throw FormatFault(part, "the file is not as it was written")
    }
  }

  /// SHA-256, where a failure of the library leaves the file unread.
  static func digest(_ bytes: RawSpan) throws(FormatFault) -> [UInt8] {
    do throws(CryptoError) {
      return try SHA256.digest(bytes)
    } catch {
      throw FormatFault("digest", error.description)
    }
  }
}
