internal import CSQLite
internal import Glibc
public import VaultCrypto

/// Seals and opens pages of one role in one file.
///
/// The format is in `docs/reference/sealed-database-format.md`, "A sealed page". Each open file has its own
/// cipher: two threads must not use one at the same time.
final class PageCipher: PageCodec {
  let format = FileFormat.sealed
  /// The header: the first 16 bytes of the file.
  let identity: [UInt8]
  private let cipher: XAES256GCM
  private let additionalData: Scratch
  private let recordData: Scratch

  /// 13 bytes for every page, and the 16 of the header for page 1.
  private static let prefixByteCount = 13

  init(
    _ role: Role, key: borrowing SecretBytes, header: SealedHeader
  ) throws(CryptoError) {
    cipher = try XAES256GCM(key: DerivedKeys.page(role, of: key, fileID: header.fileID))
    identity = header.bytes
    additionalData = Scratch(byteCount: Self.prefixByteCount + SealedHeader.byteCount)
    recordData = Scratch(byteCount: Self.prefixByteCount + 8)
    let start = unsafe additionalData.pointer
    unsafe start.storeBytes(of: role.rawValue, as: UInt8.self)
    unsafe (start + 1).copyMemory(from: header.fileID, byteCount: SealedHeader.fileIDByteCount)
    unsafe (start + Self.prefixByteCount).copyMemory(
      from: identity, byteCount: SealedHeader.byteCount)
  }

  /// Seals a page whose reserved bytes are zero into `target`.
  ///
  /// - Returns: false if the library failed, or the reserved bytes are not zero. Data that SQLite
  ///   keeps there would be lost, and its log checksums would no longer match.
  func seal(
    _ page: UnsafeRawPointer, number: UInt32, into target: UnsafeMutableRawPointer,
    nonces: inout NonceSequence
  ) -> Bool {
    guard
      unsafe UnsafeRawBufferPointer(
        start: page + PageLayout.contentByteCount, count: PageLayout.reservedByteCount
      ).isZero
    else { return false }
    let start = contentStart(number)
    if number == 1 { unsafe target.copyMemory(from: identity, byteCount: SealedHeader.byteCount) }
    let nonce = unsafe target + PageLayout.nonceOffset
    unsafe nonces.writeNext(to: nonce)
    do throws(CryptoError) {
      try unsafe cipher.seal(
        UnsafeRawBufferPointer(start: page + start, count: PageLayout.contentByteCount - start),
        into: target + start,
        nonce: UnsafeRawBufferPointer(start: nonce, count: PageLayout.nonceByteCount),
        authenticating: additionalData(page: number),
        tag: UnsafeMutableRawBufferPointer(
          start: target + PageLayout.tagOffset, count: PageLayout.tagByteCount))
      return true
    } catch {
      return false
    }
  }

  /// Opens a sealed page into `target` as SQLite knows it, reserved bytes zero.
  ///
  /// - Returns: false if the page does not authenticate; `target` is then all zeros.
  func open(
    _ sealed: UnsafeRawPointer, number: UInt32, into target: UnsafeMutableRawPointer
  ) -> Bool {
    let start = contentStart(number)
    do throws(CryptoError) {
      try unsafe cipher.open(
        UnsafeRawBufferPointer(start: sealed + start, count: PageLayout.contentByteCount - start),
        into: target + start,
        nonce: UnsafeRawBufferPointer(
          start: sealed + PageLayout.nonceOffset, count: PageLayout.nonceByteCount),
        authenticating: additionalData(page: number),
        tag: UnsafeRawBufferPointer(
          start: sealed + PageLayout.tagOffset, count: PageLayout.tagByteCount))
    } catch {
      unsafe memset(target, 0, PageLayout.byteCount)
      return false
    }
    if number == 1 {
      unsafe target.copyMemory(from: HeaderReading.plainMagic, byteCount: SealedHeader.byteCount)
    }
    unsafe memset(target + PageLayout.contentByteCount, 0, PageLayout.reservedByteCount)
    return true
  }

  /// Seals a message that is not a page, in place, bound to page number 0 and to 8 clear bytes.
  ///
  /// - Parameter sealing: room for the nonce, 24 bytes, and after it the tag, 16 bytes.
  func sealRecord(
    _ message: UnsafeMutableRawBufferPointer, clear: UnsafeRawPointer,
    sealing: UnsafeMutableRawPointer, nonces: inout NonceSequence
  ) -> Bool {
    unsafe nonces.writeNext(to: sealing)
    do throws(CryptoError) {
      try unsafe cipher.seal(
        message,
        nonce: UnsafeRawBufferPointer(start: sealing, count: PageLayout.nonceByteCount),
        authenticating: additionalData(record: clear),
        tag: UnsafeMutableRawBufferPointer(
          start: sealing + PageLayout.nonceByteCount, count: PageLayout.tagByteCount))
      return true
    } catch {
      return false
    }
  }

  /// Opens in place what ``sealRecord(_:clear:sealing:nonces:)`` sealed; wipes it if it returns
  /// false.
  func openRecord(
    _ message: UnsafeMutableRawBufferPointer, clear: UnsafeRawPointer, sealing: UnsafeRawPointer
  ) -> Bool {
    do throws(CryptoError) {
      try unsafe cipher.open(
        message,
        nonce: UnsafeRawBufferPointer(start: sealing, count: PageLayout.nonceByteCount),
        authenticating: additionalData(record: clear),
        tag: UnsafeRawBufferPointer(
          start: sealing + PageLayout.nonceByteCount, count: PageLayout.tagByteCount))
      return true
    } catch {
      return false
    }
  }

  /// Whether a sealed page 1 begins with other bytes than the header under which it opens.
  func isHeaderChanged(in sealed: UnsafeRawPointer, number: UInt32) -> Bool {
    unsafe number == 1
      && !UnsafeRawBufferPointer(start: sealed, count: identity.count).elementsEqual(identity)
  }

  /// 0, but for page 1 the length of the clear header.
  private func contentStart(_ number: UInt32) -> Int {
    number == 1 ? SealedHeader.byteCount : 0
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
  /// - Returns: false if the library failed, or the reserved bytes are in use.
  func seal(
    _ page: UnsafeRawPointer, number: UInt32, into target: UnsafeMutableRawPointer,
    nonces: inout NonceSequence
  ) -> Bool

  /// Opens a page into `target` as SQLite knows it, reserved bytes zero.
  ///
  /// - Returns: false if the page does not authenticate; `target` is then all zeros.
  func open(
    _ sealed: UnsafeRawPointer, number: UInt32, into target: UnsafeMutableRawPointer
  ) -> Bool
}

extension PageCodec {
  /// Whether page 1 states pages of 4096 bytes and this format's reserved bytes.
  ///
  /// SQLite writes a page of zeros when it only extends the file.
  func hasRoom(in page: UnsafeRawPointer) -> Bool {
    let bytes = unsafe UnsafeRawBufferPointer(start: page, count: 100)
    if unsafe bytes.isZero { return true }
    return unsafe bytes[16] == 0x10 && bytes[17] == 0x00
      && bytes[20] == UInt8(format.reservedByteCount)
  }
}

/// Seals and opens pages in memory repeatedly, for the benchmarks.
///
/// A new run of nonces begins every 100 pages, as in a transaction of that many pages.
@_spi(Testing)
public final class SealedPageLoop {
  private static let pagesPerRun = 100

  private let cipher: PageCipher
  private let page = Scratch(byteCount: PageLayout.byteCount)
  private let sealed = Scratch(byteCount: PageLayout.byteCount * pagesPerRun)
  private var nonces = NonceSequence()

  /// Draws a key, and seals a first run of pages to open.
  public init() throws(CryptoError) {
    let key = SecretBytes.random(byteCount: 32)
    cipher = try PageCipher(
      .page, key: key, header: SealedHeader(fileID: Array(repeating: 1, count: 8), key: key))
    _ = seal(count: Self.pagesPerRun)
  }

  /// Seals `count` pages; returns false if one failed.
  public func seal(count: Int) -> Bool {
    for index in 0..<count {
      let slot = index % Self.pagesPerRun
      if slot == 0 { nonces.end() }
      guard
        unsafe cipher.seal(
          page.pointer, number: UInt32(slot + 2),
          into: sealed.pointer + slot * PageLayout.byteCount, nonces: &nonces)
      else { return false }
    }
    return true
  }

  /// Opens `count` of the pages sealed last; returns false if one failed.
  public func open(count: Int) -> Bool {
    for index in 0..<count {
      let slot = index % Self.pagesPerRun
      guard
        unsafe cipher.open(
          sealed.pointer + slot * PageLayout.byteCount, number: UInt32(slot + 2),
          into: page.pointer)
      else { return false }
    }
    return true
  }
}
