internal import Glibc
internal import VaultCrypto

/// Seals and opens pages of one role in one file.
///
/// The format is in `docs/reference/sealed-database-format.md`, "A sealed page". Each open file has its own
/// cipher: two threads must not use one at the same time.
final class PageCipher: PageCodec {
  let format = FileFormat.sealed
  /// The header: the first 16 bytes of the file.
  let identity: [UInt8]
  private let cipher: MessageCipher
  private let additionalData: Scratch
  private let recordData: Scratch

  /// 13 bytes for every page, and the 16 of the header for page 1.
  private static let prefixByteCount = 13

  init(
    _ role: Role, key: borrowing SecretBytes, header: SealedHeader
  ) throws(CryptoError) {
    cipher = try MessageCipher(key: DerivedKeys.page(role, of: key, fileID: header.fileID))
    identity = header.bytes
    additionalData = Scratch(byteCount: Self.prefixByteCount + SealedHeader.byteCount)
    recordData = Scratch(byteCount: Self.prefixByteCount + 8)
    let start = unsafe additionalData.pointer
    unsafe start.storeBytes(of: role.rawValue, as: UInt8.self)
    unsafe (start + 1).copyMemory(from: header.fileID, byteCount: SealedHeader.fileIDByteCount)
    unsafe (start + Self.prefixByteCount).copyMemory(
      from: identity, byteCount: SealedHeader.byteCount)
  }

  func seal(
    _ page: UnsafeRawPointer, number: UInt32, into target: UnsafeMutableRawPointer,
    nonces: inout NonceSequence
  ) throws(CryptoError) -> Bool {
    guard unsafe hasFreeReserve(page) else { return false }
    let start = contentStart(number)
    if number == 1 { unsafe target.copyMemory(from: identity, byteCount: SealedHeader.byteCount) }
    try unsafe cipher.seal(
      UnsafeRawBufferPointer(start: page + start, count: PageLayout.contentByteCount - start),
      into: target + start, sealing: target + PageLayout.contentByteCount,
      authenticating: additionalData(page: number), nonces: &nonces)
    return true
  }

  func open(
    _ sealed: UnsafeRawPointer, number: UInt32, into target: UnsafeMutableRawPointer
  ) throws(CryptoError) -> Bool {
    let start = contentStart(number)
    guard
      try unsafe cipher.open(
        UnsafeRawBufferPointer(start: sealed + start, count: PageLayout.contentByteCount - start),
        into: target + start, sealing: sealed + PageLayout.contentByteCount,
        authenticating: additionalData(page: number))
    else {
      unsafe memset(target, 0, PageLayout.byteCount)
      return false
    }
    unsafe complete(target, number: number)
    return true
  }

  /// Seals a message that is not a page, in place, bound to page number 0 and to 8 clear bytes.
  ///
  /// - Parameter sealing: room for the nonce and the tag.
  func sealRecord(
    _ message: UnsafeMutableRawPointer, byteCount: Int, clear: UnsafeRawPointer,
    sealing: UnsafeMutableRawPointer, nonces: inout NonceSequence
  ) throws(CryptoError) {
    try unsafe cipher.seal(
      UnsafeRawBufferPointer(start: message, count: byteCount), into: message, sealing: sealing,
      authenticating: additionalData(record: clear), nonces: &nonces)
  }

  /// Opens in place what `sealRecord` sealed; wipes it if it returns false.
  func openRecord(
    _ message: UnsafeMutableRawPointer, byteCount: Int, clear: UnsafeRawPointer,
    sealing: UnsafeRawPointer
  ) throws(CryptoError) -> Bool {
    try unsafe cipher.open(
      UnsafeRawBufferPointer(start: message, count: byteCount), into: message, sealing: sealing,
      authenticating: additionalData(record: clear))
  }

  /// Whether a sealed page 1 begins with other bytes than the header under which it opens.
  func isHeaderChanged(in sealed: UnsafeRawPointer, number: UInt32) -> Bool {
    unsafe number == 1
      && !UnsafeRawBufferPointer(start: sealed, count: identity.count).elementsEqual(identity)
  }

  private func additionalData(page number: UInt32) -> UnsafeRawBufferPointer {
    unsafe additionalData.pointer.storeBigEndian(number, at: 9)
    return unsafe additionalData.bytes(
      0..<(number == 1 ? Self.prefixByteCount + SealedHeader.byteCount : Self.prefixByteCount))
  }

  private func additionalData(record clear: UnsafeRawPointer) -> UnsafeRawBufferPointer {
    unsafe recordData.pointer.copyMemory(
      from: additionalData.pointer, byteCount: Self.prefixByteCount)
    unsafe recordData.pointer.storeBigEndian(0, at: 9)
    unsafe (recordData.pointer + Self.prefixByteCount).copyMemory(from: clear, byteCount: 8)
    return unsafe recordData.bytes(0..<Self.prefixByteCount + 8)
  }
}

/// Encrypts and decrypts the pages of one file format.
///
/// Each open file has its own: two threads must not use one at the same time.
protocol PageCodec: AnyObject {
  var format: FileFormat { get }

  /// The first 16 bytes of the file that this codec belongs to.
  var identity: [UInt8] { get }

  /// Seals a page whose reserved bytes are zero into `target`.
  ///
  /// - Parameter nonces: the connection's nonces; a format with another kind of nonce draws its
  ///   own.
  /// - Returns: false if the reserved bytes are not zero. Data that SQLite keeps there would be
  ///   lost, and its log checksums would no longer match.
  /// - Throws: `libraryFailure`.
  func seal(
    _ page: UnsafeRawPointer, number: UInt32, into target: UnsafeMutableRawPointer,
    nonces: inout NonceSequence
  ) throws(CryptoError) -> Bool

  /// Opens a page into `target` as SQLite knows it, reserved bytes zero.
  ///
  /// - Returns: false if the page does not authenticate; `target` is then all zeros.
  /// - Throws: `libraryFailure`, which says nothing about the page.
  func open(
    _ sealed: UnsafeRawPointer, number: UInt32, into target: UnsafeMutableRawPointer
  ) throws(CryptoError) -> Bool
}

extension PageCodec {
  /// 0, but for page 1 the length of the clear first bytes.
  func contentStart(_ number: UInt32) -> Int { number == 1 ? PageLayout.identityByteCount : 0 }

  /// Whether SQLite left the bytes at the end of a page free.
  func hasFreeReserve(_ page: UnsafeRawPointer) -> Bool {
    let count = format.reservedByteCount
    return unsafe UnsafeRawBufferPointer(start: page + PageLayout.byteCount - count, count: count)
      .isZero
  }

  /// Completes an opened page as SQLite knows it: the first bytes of page 1, and an empty reserve.
  func complete(_ page: UnsafeMutableRawPointer, number: UInt32) {
    if number == 1 {
      unsafe page.copyMemory(
        from: PageLayout.plainIdentity, byteCount: PageLayout.identityByteCount)
    }
    let count = format.reservedByteCount
    unsafe memset(page + PageLayout.byteCount - count, 0, count)
  }

  /// The reason to refuse a page 1: its page size or its reserved bytes; nil if both are right.
  ///
  /// SQLite writes a page of zeros when it only extends the file.
  func fault(inPageOne page: UnsafeRawPointer) -> SealedDatabaseError.Code? {
    let bytes = unsafe UnsafeRawBufferPointer(start: page, count: 100)
    if unsafe bytes.isZero { return nil }
    if unsafe bytes[16] != 0x10 || bytes[17] != 0x00 { return .otherPageSize }
    return unsafe bytes[20] == UInt8(format.reservedByteCount) ? nil : .reserveInUse
  }
}
