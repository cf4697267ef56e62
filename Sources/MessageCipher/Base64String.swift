internal import FoundationEssentials
internal import StrictJSON

/// Base64 (RFC 4648, section 4) in a JSON string.
enum Base64String {
  /// Bytes as a JSON string of base64.
  static func encode(_ bytes: [UInt8]) -> [UInt8] {
    let quotationMark = UInt8(ascii: "\"")
    return [quotationMark] + Data(bytes).base64EncodedData() + [quotationMark]
  }

  /// The bytes of a JSON string whose grammar was checked; nil unless it is base64 in the form of
  /// ``encode(_:)``.
  static func decode(_ quoted: ArraySlice<UInt8>) -> [UInt8]? {
    guard let text = JSONText.decode(quoted), let data = Data(base64Encoded: Data(text)),
      data.base64EncodedData() == Data(text)
    else { return nil }
    return [UInt8](data)
  }
}
