package import VaultCrypto

/// A record as it lies in the log: a clear header, then what is sealed.
package struct SealedRecord: Sendable, Hashable {
  /// The format's version, the first byte of a record.
  package static let version: UInt8 = 1
  /// Version, author, number and key.
  package static let headerByteCount = 1 + 16 + 8 + 4
  /// The most bytes of one record, its header and seal included: half of what brokers take by default.
  package static let mostBytes = 512 << 10

  package let name: RecordNumber
  /// The number of the key in the shard's ring under which it is sealed.
  package let key: UInt32
  /// All bytes, header included.
  package let bytes: [UInt8]
  package let digest: RecordDigest

  /// Writes a record from what follows the header.
  package init(_ name: RecordNumber, key: UInt32, sealed: [UInt8]) throws(CryptoError) {
    self.name = name
    self.key = key
    bytes = Self.header(name, key: key) + sealed
    digest = try RecordDigest(of: bytes)
  }

  /// Takes what a log has stored: bytes of another form are a record with a number that no author uses.
  package init(reading bytes: [UInt8]) throws(CryptoError) {
    do {
      self = try SealedRecord(parsing: bytes)
    } catch let error as CryptoError {
      throw error
    } catch {
      name = RecordNumber(AuthorID(0), 0)
      key = 0
      self.bytes = bytes
      digest = try RecordDigest(of: bytes)
    }
  }

  /// Reads the header of a record.
  ///
  /// - Throws: ``RecordError`` for another version, and for fewer bytes than a header has.
  package init(parsing bytes: [UInt8]) throws {
    var reader = RecordReader(bytes)
    guard try reader.byte() == Self.version else { throw RecordError.unknownVersion }
    name = try reader.recordNumber()
    key = try reader.number()
    self.bytes = bytes
    digest = try RecordDigest(of: bytes)
  }

  /// What follows the header.
  package var sealed: [UInt8] { Array(bytes[Self.headerByteCount...]) }

  static func header(_ name: RecordNumber, key: UInt32) -> [UInt8] {
    var writer = RecordWriter()
    writer.append(version)
    writer.append(name)
    writer.append(key)
    return writer.bytes
  }
}
