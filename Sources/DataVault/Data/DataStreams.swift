public import VaultCrypto

/// Seals a stream in parts: write ``header`` first, then the results of ``update(_:)`` and
/// ``finish()``.
///
/// It buffers at most 64 KiB of plaintext in locked memory. It keeps working after the vault is
/// locked.
public struct DataEncryptor: ~Copyable, Sendable {
  /// The first 44 bytes of the sealed data.
  public let header: [UInt8]

  private var chunk: DataChunk
  private var waiting = SecretBytes(zeroCount: DataChunk.byteCount)
  private var waitingByteCount = 0

  init(header: DataHeader, key: consuming SecretBytes) {
    self.header = header.bytes
    chunk = DataChunk(key: key)
  }

  /// Adds plaintext of any length.
  ///
  /// - Returns: the sealed bytes that are ready; often none.
  /// - Throws: `invalidArgument` beyond 256 TiB.
  public mutating func update(_ plaintext: RawSpan) throws(VaultError) -> [UInt8] {
    var sealed: [UInt8] = []
    var rest = plaintext
    while rest.byteCount > 0 {
      if waitingByteCount == DataChunk.byteCount {  // more follows: not the last
        sealed += try sealWaiting(isLast: false)
      }
      let count = min(rest.byteCount, DataChunk.byteCount - waitingByteCount)
      let piece = rest.extracting(first: count)
      unsafe waiting.withUnsafeMutableBytes { target in
        unsafe piece.withUnsafeBytes { piece in
          unsafe UnsafeMutableRawBufferPointer(rebasing: target[waitingByteCount...])
            .copyMemory(from: piece)
        }
      }
      waitingByteCount += count
      rest = rest.extracting(droppingFirst: count)
    }
    return sealed
  }

  /// Ends the stream.
  ///
  /// - Returns: the last sealed bytes; without them the stream counts as truncated.
  public consuming func finish() throws(VaultError) -> [UInt8] {
    try sealWaiting(isLast: true)
  }

  private mutating func sealWaiting(isLast: Bool) throws(VaultError) -> [UInt8] {
    let count = waitingByteCount
    waitingByteCount = 0
    return try waiting.withBytes { (bytes) throws(VaultError) in
      try chunk.seal(bytes.extracting(first: count), isLast: isLast)
    }
  }
}

/// Opens a stream in parts, after its header of ``headerByteCount`` bytes.
///
/// Each result is authentic and in its right position. Only a successful ``finish()`` means that
/// the data is complete.
public struct DataDecryptor: ~Copyable, Sendable {
  /// The size of the header in bytes: 44.
  public static let headerByteCount = DataHeader.byteCount

  private var chunk: DataChunk
  private var waiting: [UInt8] = []

  init(key: consuming SecretBytes) {
    chunk = DataChunk(key: key)
  }

  /// Adds sealed bytes of any length.
  ///
  /// - Returns: the plaintext of the chunks that are complete; often empty.
  /// - Throws: `damaged`, also for another context.
  public mutating func update(_ sealed: RawSpan) throws(VaultError) -> SecretBytes {
    unsafe sealed.withUnsafeBytes { unsafe waiting.append(contentsOf: $0) }
    // A chunk that more bytes follow is not the last.
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
  /// - Returns: the rest of the plaintext.
  /// - Throws: `truncated` if the end is missing; `damaged`.
  public consuming func finish() throws(VaultError) -> SecretBytes {
    try chunk.open(waiting[...], isLast: true)
  }
}
