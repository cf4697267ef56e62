public import VaultCrypto

/// Opens a stream piece by piece, after its header of ``headerByteCount`` bytes.
///
/// What it returns is authentic and in its place. Only ``finish()`` says that it was all.
public struct DataDecryptor: ~Copyable, Sendable {
  /// How many bytes the header has: 44.
  public static let headerByteCount = DataHeader.byteCount

  private var chunk: DataChunk
  private var waiting: [UInt8] = []

  init(key: consuming SecretBytes) {
    chunk = DataChunk(key: key)
  }

  /// Takes the next sealed bytes, of any length.
  ///
  /// - Returns: what has been opened by them; often nothing.
  /// - Throws: `damaged`, also for another context.
  public mutating func update(_ sealed: RawSpan) throws(VaultError) -> SecretBytes {
    unsafe sealed.withUnsafeBytes { unsafe waiting.append(contentsOf: $0) }
    // As long as more follows, a chunk is not the last.
    let chunkCount = max(0, waiting.count - 1) / DataChunk.sealedByteCount
    var opened = SecretBytes(zeroCount: chunkCount * DataChunk.byteCount)
    for index in 0..<chunkCount {
      let start = index * DataChunk.sealedByteCount
      let plaintext = try chunk.open(
        waiting[start..<start + DataChunk.sealedByteCount], isLast: false)
      unsafe opened.withUnsafeMutableBytes { target in
        unsafe plaintext.withUnsafeBytes { plaintext in
          unsafe UnsafeMutableRawBufferPointer(rebasing: target[(index * DataChunk.byteCount)...])
            .copyMemory(from: plaintext)
        }
      }
    }
    waiting.removeFirst(chunkCount * DataChunk.sealedByteCount)
    return opened
  }

  /// Ends the stream.
  ///
  /// - Returns: what is left.
  /// - Throws: `truncated` when the end is missing; `damaged`.
  public consuming func finish() throws(VaultError) -> SecretBytes {
    try chunk.open(waiting[...], isLast: true)
  }
}
