@testable import VaultCrypto

extension SecretBytes {
  /// The contents in the open, to compare with what a table says.
  var array: [UInt8] {
    withUnsafeBytes { [UInt8]($0) }
  }
}

extension [UInt8] {
  /// Hexadecimal digits, as tables write them.
  var hex: String {
    let digits = Array<UInt8>("0123456789abcdef".utf8)
    let text: [UInt8] = flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    return String(decoding: text, as: UTF8.self)
  }
}
