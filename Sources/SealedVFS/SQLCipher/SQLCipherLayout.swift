/// Where things lie in a page of SQLCipher 4: `docs/sqlcipher-format.md`.
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
  /// What each byte of the salt is changed by for the second key.
  static let codeSaltMask: UInt8 = 0x3A
}
