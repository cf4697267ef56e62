internal import CSQLite

/// What a file format makes of a page: all that differs between the database files we know.
///
/// Not for two threads at once: each open file has its own.
protocol PageCodec: AnyObject {
  var format: FileFormat { get }

  /// The first 16 bytes of the file that this codec belongs to.
  var identity: [UInt8] { get }

  /// Seals a page whose reserved bytes are zero into `target`.
  ///
  /// - Parameter nonces: the connection's; a format with nonces of another kind draws its own.
  /// - Returns: false when the library failed, or the reserved bytes are in use.
  func seal(
    _ page: UnsafeRawPointer, number: UInt32, into target: UnsafeMutableRawPointer,
    nonces: inout NonceSequence
  ) -> Bool

  /// Opens a page into `target` as SQLite knows it, reserved bytes zero.
  ///
  /// - Returns: false when it does not authenticate; `target` is then all zeros.
  func open(
    _ sealed: UnsafeRawPointer, number: UInt32, into target: UnsafeMutableRawPointer
  ) -> Bool
}

extension PageCodec {
  /// Whether page 1 says that pages have 4096 bytes and this format's reserve; SQLite writes zeros
  /// there when it only wants the file to be longer.
  func hasRoom(in page: UnsafeRawPointer) -> Bool {
    let bytes = unsafe UnsafeRawBufferPointer(start: page, count: 100)
    if unsafe bytes.isZero { return true }
    return unsafe bytes[16] == 0x10 && bytes[17] == 0x00
      && bytes[20] == UInt8(format.reservedByteCount)
  }
}
