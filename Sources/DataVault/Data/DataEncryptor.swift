internal import VaultCrypto

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
