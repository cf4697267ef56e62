internal import Foundation

/// Base64 (RFC 4648, section 4) in its one canonical form: padded, without other characters, and with
/// nothing in the bits that hold nothing.
package enum Base64Text {
  /// The text of bytes.
  package static func encode(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

  /// The bytes of a text; nil if it is not what ``encode(_:)`` writes.
  package static func decode(_ text: String) -> [UInt8]? {
    guard let data = Data(base64Encoded: text), data.base64EncodedString() == text else {
      return nil
    }
    return [UInt8](data)
  }
}
