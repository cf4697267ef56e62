@testable import VaultCrypto

extension SecretBytes {
  /// A copy of the contents in unprotected memory, to compare with a table.
  var array: [UInt8] {
    withUnsafeBytes { [UInt8]($0) }
  }
}

extension [UInt8] {
  /// The bytes in hexadecimal digits, as in tables.
  var hex: String {
    let digits = Array<UInt8>("0123456789abcdef".utf8)
    let text: [UInt8] = flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    return String(decoding: text, as: UTF8.self)
  }
}
