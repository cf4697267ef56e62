/// What one sealed record has: a whole record, or a part of one that is too large.
///
/// Each part has a number of its own, and is a record of its own for every rule about numbers. The record takes
/// effect with its last part.
package struct RecordPart: Sendable, Hashable {
  /// The most parts of one record: 32 MiB.
  package static let mostCount = 64
  /// What a sealed part has at most beside its share of the record.
  package static let overheadByteCount =
    SealedRecord.headerByteCount + RecordSeal.overheadByteCount + 1 + 24

  /// Whether another part follows.
  package let isContinued: Bool
  /// In an author's first record: the last record of the author before it on the same disk.
  ///
  /// The record waits for that one, so that a restart does not change an order.
  package let follows: RecordNumber?
  /// A share of the encoded record.
  package let share: [UInt8]

  package init(isContinued: Bool, follows: RecordNumber?, share: [UInt8]) {
    self.isContinued = isContinued
    self.follows = follows
    self.share = share
  }

  /// Cuts an encoded record into parts.
  ///
  /// - Parameter mostBytes: the most bytes of a part when it is sealed.
  /// - Throws: ``RecordError`` if it has too many.
  static func split(
    _ encoded: [UInt8], follows: RecordNumber?, mostBytes: Int
  ) throws(RecordError) -> [RecordPart] {
    let most = max(mostBytes - overheadByteCount, 1)
    let count = max(1, (encoded.count + most - 1) / most)
    guard count <= mostCount else { throw RecordError.tooManyParts }
    return (0..<count).map { index in
      RecordPart(
        isContinued: index + 1 < count, follows: index == 0 ? follows : nil,
        share: Array(encoded[index * most..<min(encoded.count, (index + 1) * most)]))
    }
  }

  /// The bytes that are sealed.
  package var bytes: [UInt8] {
    var writer = RecordWriter()
    writer.append(UInt8((isContinued ? 1 : 0) | (follows == nil ? 0 : 2)))
    if let follows { writer.append(follows) }
    writer.append(share)
    return writer.bytes
  }

  /// Reads what was sealed.
  ///
  /// - Throws: ``RecordError`` if the flags are unknown, or the bytes end too early.
  package init(decoding bytes: [UInt8]) throws(RecordError) {
    var reader = RecordReader(bytes)
    let flags = try reader.byte()
    guard flags <= 3 else { throw RecordError.invalidFlag }
    isContinued = flags & 1 != 0
    follows = flags & 2 != 0 ? try reader.recordNumber() : nil
    share = reader.rest()
  }
}
