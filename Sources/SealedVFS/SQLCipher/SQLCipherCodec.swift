internal import Glibc
internal import VaultCrypto

/// Seals and opens pages of SQLCipher 4: AES-256-CBC, then HMAC-SHA-512 over the ciphertext.
///
/// See `docs/reference/sqlcipher-format.md`. The key schedules of both keys are computed once for each open
/// file.
final class SQLCipherCodec: PageCodec {
  let format = FileFormat.sqlcipher4
  /// The salt: the first 16 bytes of the file, which no HMAC covers.
  let identity: [UInt8]
  private let cipher: AES256CBC
  private let code: KeyedHMACSHA512
  private let found = Scratch(byteCount: SQLCipherLayout.codeByteCount)

  init(pageKey: borrowing SecretBytes, salt: [UInt8]) throws(CryptoError) {
    identity = salt
    cipher = try AES256CBC(key: pageKey)
    code = try KeyedHMACSHA512(
      key: PBKDF2.sha512(
        password: pageKey, salt: salt.map { $0 ^ SQLCipherLayout.codeSaltMask },
        iterationCount: SQLCipherLayout.codeKeyIterationCount,
        byteCount: SQLCipherLayout.keyByteCount))
  }

  func seal(
    _ page: UnsafeRawPointer, number: UInt32, into target: UnsafeMutableRawPointer,
    nonces: inout NonceSequence
  ) throws(CryptoError) -> Bool {
    guard unsafe hasFreeReserve(page) else { return false }
    let start = contentStart(number)
    if number == 1 { unsafe target.copyMemory(from: identity, byteCount: identity.count) }
    // CBC needs unpredictable initialization vectors: they must not count up.
    unsafe RandomSource.system.fill(
      UnsafeMutableRawBufferPointer(
        start: target + SQLCipherLayout.ivOffset, count: SQLCipherLayout.ivByteCount))
    try unsafe cipher.encrypt(
      UnsafeRawBufferPointer(
        start: page + start, count: SQLCipherLayout.contentByteCount - start),
      into: target + start, iv: iv(of: target))
    try unsafe writeCode(of: target, number, to: target + SQLCipherLayout.codeOffset)
    return true
  }

  func open(
    _ sealed: UnsafeRawPointer, number: UInt32, into target: UnsafeMutableRawPointer
  ) throws(CryptoError) -> Bool {
    let start = contentStart(number)
    try unsafe writeCode(of: sealed, number, to: found.pointer)
    let stored = unsafe UnsafeRawBufferPointer(
      start: sealed + SQLCipherLayout.codeOffset, count: SQLCipherLayout.codeByteCount)
    guard
      isEqualInConstantTime(
        unsafe RawSpan(_unsafeBytes: stored),
        unsafe RawSpan(_unsafeBytes: found.bytes(0..<SQLCipherLayout.codeByteCount)))
    else {
      unsafe memset(target, 0, PageLayout.byteCount)
      return false
    }
    try unsafe cipher.decrypt(
      UnsafeRawBufferPointer(
        start: sealed + start, count: SQLCipherLayout.contentByteCount - start),
      into: target + start, iv: iv(of: sealed))
    unsafe complete(target, number: number)
    return true
  }

  private func iv(of sealed: UnsafeRawPointer) -> UnsafeRawBufferPointer {
    unsafe UnsafeRawBufferPointer(
      start: sealed + SQLCipherLayout.ivOffset, count: SQLCipherLayout.ivByteCount)
  }

  /// Writes the HMAC over ciphertext, initialization vector and page number (little endian).
  private func writeCode(
    of sealed: UnsafeRawPointer, _ number: UInt32, to target: UnsafeMutableRawPointer
  ) throws(CryptoError) {
    let start = contentStart(number)
    var word = number.littleEndian
    try unsafe withUnsafeBytes(of: &word) { (word) throws(CryptoError) in
      try unsafe code.writeCode(
        of: UnsafeRawBufferPointer(
          start: sealed + start, count: SQLCipherLayout.codeOffset - start),
        word, to: target)
    }
  }
}

/// The offsets in a page of SQLCipher 4: `docs/reference/sqlcipher-format.md`.
enum SQLCipherLayout {
  static let saltByteCount = 16
  static let contentByteCount = 4016
  static let ivOffset = 4016
  static let ivByteCount = 16
  static let codeOffset = 4032
  static let codeByteCount = 64

  static let keyByteCount = 32
  static let iterationCount = 256_000
  static let codeKeyIterationCount = 2
  /// The mask that is XORed with each byte of the salt for the HMAC key.
  static let codeSaltMask: UInt8 = 0x3A
}
