internal import CZlib

/// The body of a request, decompressed if it is compressed.
///
/// PubNub's SDKs send gzip and zlib, and one says the first but sends the second. So the bytes decide, not the header.
enum RequestBody {
  enum Fault: Error { case malformed, tooLarge }

  /// The bytes without compression.
  ///
  /// - Parameter maximumByteCount: the most bytes after decompression.
  static func decompressed(
    _ body: [UInt8], maximumByteCount: Int
  ) throws(Fault) -> [UInt8] {
    guard isCompressed(body) else {
      guard body.count <= maximumByteCount else { throw .tooLarge }
      return body
    }
    return try inflate(body, maximumByteCount: maximumByteCount)
  }

  /// Whether the bytes begin as gzip (RFC 1952) or as zlib (RFC 1950); no JSON text does.
  static func isCompressed(_ body: [UInt8]) -> Bool {
    guard body.count >= 2 else { return false }
    if body[0] == 0x1F && body[1] == 0x8B { return true }
    return body[0] == 0x78 && (UInt16(body[0]) << 8 | UInt16(body[1])) % 31 == 0
  }

  private static func inflate(
    _ body: [UInt8], maximumByteCount: Int
  ) throws(Fault) -> [UInt8] {
    var stream = unsafe z_stream()
    guard unsafe czlib_inflate_init(&stream) == Z_OK else { throw .malformed }
    defer { unsafe inflateEnd(&stream) }
    // One more byte than allowed shows whether there are more.
    var output = [UInt8](repeating: 0, count: maximumByteCount + 1)
    var input = body
    let (status, count) = unsafe input.withUnsafeMutableBufferPointer { input in
      unsafe output.withUnsafeMutableBufferPointer { output in
        unsafe stream.next_in = input.baseAddress
        unsafe stream.avail_in = UInt32(input.count)
        unsafe stream.next_out = output.baseAddress
        unsafe stream.avail_out = UInt32(output.count)
        let status = unsafe CZlib.inflate(&stream, Z_FINISH)
        return unsafe (status, output.count - Int(stream.avail_out))
      }
    }
    if count > maximumByteCount { throw .tooLarge }
    guard status == Z_STREAM_END else { throw .malformed }
    output.removeSubrange(count...)
    return output
  }
}
