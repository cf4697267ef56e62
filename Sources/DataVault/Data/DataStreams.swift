public import VaultCrypto

/// Seals a stream piece by piece: first ``header``, then what ``update(_:)`` and ``finish()`` return.
///
/// It holds at most 64 KiB of what it was given, in locked memory. Locking the vault does not end it.
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

  /// Takes the next piece, of any length.
  ///
  /// - Returns: the sealed bytes that are ready; often none.
  /// - Throws: `invalidArgument` beyond 256 TiB.
  public mutating func update(_ plaintext: RawSpan) throws(VaultError) -> [UInt8] {
    var sealed: [UInt8] = []
    var rest = plaintext
    while rest.byteCount > 0 {
      if waitingByteCount == DataChunk.byteCount {  // more follows: this one is not the last
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
  /// - Returns: the last sealed bytes, without which what came before is truncated.
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
