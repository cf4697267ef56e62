package import VaultCrypto

/// SHA-256 of a sealed record, or of everything applied up to one.
package struct RecordDigest: Sendable, Hashable {
  package let bytes: [UInt8]

  /// The digest before the first record.
  package static let zero = RecordDigest(bytes: [UInt8](repeating: 0, count: SHA256.byteCount))

  /// - Parameter bytes: 32 bytes.
  package init(bytes: [UInt8]) { self.bytes = bytes }

  /// The digest of a sealed record's bytes.
  package init(of record: [UInt8]) throws(CryptoError) {
    bytes = try unsafe SHA256.digest(record.span.bytes)
  }

  /// The digest of a history with one record more.
  ///
  /// - Parameters:
  ///   - record: that of the record's bytes.
  ///   - timetoken: the greatest timetoken after the record, which every node must have found.
  package func appending(_ record: RecordDigest, _ timetoken: Int64) throws(CryptoError)
    -> RecordDigest
  {
    var writer = RecordWriter()
    writer.append(bytes)
    writer.append(record.bytes)
    writer.append(UInt64(bitPattern: timetoken))
    return try RecordDigest(of: writer.bytes)
  }
}
