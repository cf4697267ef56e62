import CFuzzedSQLite
import Foundation
import SealedVFS

/// Journals with invalid but authentic headers and records.
extension Workbench {
  private static let headerByteCount = 512
  private static let pageByteCount = 4096
  private static let magic: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]

  /// Writes an open transaction's journal as SQLite writes it, from edited plaintext.
  ///
  /// The journal has two segments, as after a sync within a transaction. The positions of the
  /// headers are fixed. The contents of headers and records are not.
  func sealJournalAnew(_ edits: Edits) {
    let connection = Connection(path, vfs: SealedVFS.name)
    connection.run("PRAGMA synchronous = FULL; BEGIN; UPDATE t SET text = text || 'y'")
    guard let main = connection.file, let journal = connection.sibling,
      let methods = journal.pointee.pMethods?.pointee
    else { return }
    var segments = [[UInt32(1), 2], [3]].map { Segment(pages: $0, of: main) }
    // Contiguous, so that a few bytes of input reach all of them.
    var bytes = segments.flatMap { $0.header + $0.records }
    edits.apply(to: &bytes)
    for index in segments.indices { bytes = Array(segments[index].take(bytes)) }
    _ = methods.xTruncate(journal, 0)
    var offset: Int64 = 0
    for segment in segments {
      segment.write(to: journal, at: offset, isSynchronized: edits.mode & 4 == 0)
      offset += Int64(segment.header.count + segment.records.count)
      offset = (offset + 511) / 512 * 512
    }
    let kept = ["", "-journal"].map { FileManager.default.contents(atPath: path + $0) }
    connection.run("ROLLBACK")
    _ = consume connection
    for (suffix, contents) in zip(["", "-journal"], kept) {
      if let contents {
        _ = FileManager.default.createFile(atPath: path + suffix, contents: contents)
      }
    }
  }

  /// A header and its records, as plaintext.
  private struct Segment {
    var header: [UInt8]
    var records: [UInt8] = []

    init(pages: [UInt32], of file: UnsafeMutablePointer<sqlite3_file>) {
      let words: [UInt32] = [UInt32(pages.count), 0x1234_5678, 4, 512, UInt32(pageByteCount)]
      header = magic + words.flatMap(Self.bytes)
      header += [UInt8](repeating: 0, count: headerByteCount - header.count)
      for number in pages {
        var page = [UInt8](repeating: 0, count: pageByteCount)
        page.withUnsafeMutableBytes { target in
          _ = file.pointee.pMethods?.pointee.xRead(
            file, target.baseAddress, Int32(pageByteCount), Int64(number - 1) * 4096)
        }
        let sum = stride(from: pageByteCount - 200, to: 0, by: -200)
          .reduce(UInt32(0x1234_5678)) { $0 &+ UInt32(page[$1]) }
        records += Self.bytes(number) + page + Self.bytes(sum)
      }
    }

    private static func bytes(_ word: UInt32) -> [UInt8] {
      [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> $0) }
    }

    /// Takes this segment's bytes from the front of the edited bytes, as far as they suffice.
    mutating func take(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
      let rest = bytes.dropFirst(header.count)
      if bytes.count >= header.count { header = Array(bytes.prefix(header.count)) }
      let byteCount = records.count
      records = Array(rest.prefix(byteCount))
      return rest.dropFirst(byteCount)
    }

    /// Writes the header without a count, the records, a sync, the count, a sync: pager.c,
    /// `syncJournal`.
    func write(
      to file: UnsafeMutablePointer<sqlite3_file>, at start: Int64, isSynchronized: Bool
    ) {
      guard let methods = file.pointee.pMethods?.pointee else { return }
      func put(_ bytes: ArraySlice<UInt8>, at offset: Int64) {
        bytes.withUnsafeBytes { source in
          _ = methods.xWrite(file, source.baseAddress, Int32(source.count), offset)
        }
      }
      let uncounted = [UInt8](repeating: 0, count: 12) + header[12...]
      put(uncounted[...], at: start)
      let unit = 4 + pageByteCount + 4
      for place in stride(from: 0, to: records.count - unit + 1, by: unit) {
        let offset = start + Int64(headerByteCount + place)
        put(records[place..<place + 4], at: offset)
        put(records[place + 4..<place + 4 + pageByteCount], at: offset + 4)
        put(
          records[place + 4 + pageByteCount..<place + unit], at: offset + 4 + Int64(pageByteCount))
      }
      if isSynchronized { _ = methods.xSync(file, SQLITE_SYNC_NORMAL) }
      put(header[..<12], at: start)
      _ = methods.xSync(file, SQLITE_SYNC_NORMAL)
    }
  }
}
