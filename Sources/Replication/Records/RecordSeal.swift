package import VaultCrypto

/// Seals and opens the records of a shard under one key of its ring, with XAES-256-GCM.
///
/// The associated data binds a record to its shard, its author and number, and its key, so that none passes for
/// another. It has no place in the log: that is given later, and ``RecordDigest`` binds it. Only one thread at a
/// time can use it.
package final class RecordSeal {
  /// What a sealed record has beside its header and its contents: nonce and tag.
  package static let overheadByteCount = XAES256GCM.nonceByteCount + XAES256GCM.tagByteCount

  private let shard: ShardID
  private let key: UInt32
  private let cipher: XAES256GCM
  private let random: RandomSource

  /// - Parameters:
  ///   - number: that of the key in the ring.
  ///   - secret: 32 bytes.
  package init(
    shard: ShardID, key number: UInt32, secret: borrowing SecretBytes, random: RandomSource
  ) throws(CryptoError) {
    self.shard = shard
    key = number
    let derived = try HKDF.sha512(
      inputKey: secret, salt: [], info: Array("datavault/replication/record".utf8),
      byteCount: XAES256GCM.keyByteCount)
    cipher = try XAES256GCM(key: derived)
    self.random = random
  }

  /// Seals one part of a record.
  package func seal(_ part: [UInt8], as name: RecordNumber) throws(CryptoError) -> SealedRecord {
    let nonce = random.bytes(count: XAES256GCM.nonceByteCount)
    var message = part
    let tag = try cipher.seal(
      &message, nonce: nonce, authenticating: associatedData(SealedRecord.header(name, key: key)))
    return try SealedRecord(name, key: key, sealed: nonce + message + tag)
  }

  /// Opens a record of this key.
  ///
  /// - Throws: `authenticationFailed` if it was changed, is of another shard, or is sealed under another key;
  ///   `invalidArgument` if its header names another key, or it is shorter than a seal.
  package func open(_ record: SealedRecord) throws(CryptoError) -> [UInt8] {
    let sealed = record.sealed
    guard record.key == key, sealed.count >= Self.overheadByteCount else {
      throw CryptoError(.invalidArgument, in: "opening a record of the log")
    }
    let nonce = Array(sealed.prefix(XAES256GCM.nonceByteCount))
    var message = Array(
      sealed.dropFirst(XAES256GCM.nonceByteCount).dropLast(XAES256GCM.tagByteCount))
    try cipher.open(
      &message, nonce: nonce,
      authenticating: associatedData(Array(record.bytes.prefix(SealedRecord.headerByteCount))),
      tag: Array(sealed.suffix(XAES256GCM.tagByteCount)))
    return message
  }

  private func associatedData(_ header: [UInt8]) -> [UInt8] {
    var writer = RecordWriter()
    writer.append(shard)
    writer.append(header)
    return writer.bytes
  }
}
