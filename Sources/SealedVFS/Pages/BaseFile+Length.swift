internal import CSQLite

extension BaseFile {
  /// The length of a database file, 0 where only the room for its header is there.
  ///
  /// The header is the first write to a file and is synchronized before the next. A power cut
  /// between the two may leave the file with its new length and zeros: it holds nothing yet.
  func sealedByteCount(_ target: UnsafeMutablePointer<Int64>) -> Int32 {
    let result = unsafe byteCount(target)
    guard result == SQLITE_OK, unsafe target.pointee == Int64(SealedHeader.byteCount) else {
      return result
    }
    let header = Scratch(byteCount: SealedHeader.byteCount)
    guard unsafe read(header.pointer, SealedHeader.byteCount, at: 0) == SQLITE_OK else {
      return SQLITE_IOERR_READ
    }
    if unsafe header.bytes(0..<SealedHeader.byteCount).isZero { unsafe target.pointee = 0 }
    return SQLITE_OK
  }
}
