internal import Foundation
internal import StrictJSON

/// Writes a JSON object member by member; a member without a value is left out.
package struct JSONObjectWriter {
  private(set) var bytes: [UInt8] = [UInt8(ascii: "{")]

  package init() {}

  /// The object on a line of its own.
  package var line: [UInt8] { bytes + [UInt8(ascii: "}"), UInt8(ascii: "\n")] }

  package mutating func add(_ name: String, _ text: String?) {
    guard let text else { return }
    begin(name)
    JSONText.append(quoting: text, to: &bytes)
  }

  package mutating func add(_ name: String, number: Int?) {
    guard let number else { return }
    begin(name)
    bytes += String(number).utf8
  }

  /// A time or a timetoken: a string, as it has more digits than JavaScript keeps.
  package mutating func add(_ name: String, time: Int64?) { add(name, time.map { String($0) }) }

  /// The member is left out if it is false.
  mutating func add(_ name: String, flag: Bool) {
    if !flag { return }
    begin(name)
    bytes += "true".utf8
  }

  /// Writes the payload as text if it is UTF-8, otherwise as base64 under another name.
  package mutating func add(_ name: String, orBase64 base64Name: String, _ payload: [UInt8]) {
    if String(validating: payload, as: UTF8.self) == nil {
      return add(base64Name, Base64Text.encode(payload))
    }
    begin(name)
    JSONText.append(quoting: payload, to: &bytes)
  }

  /// An empty list is left out, unless `evenEmpty` is set.
  mutating func add(_ name: String, texts: [String]?, evenEmpty: Bool = false) {
    guard let texts, evenEmpty || !texts.isEmpty else { return }
    begin(name)
    append(list: texts) { JSONText.append(quoting: $1, to: &$0.bytes) }
  }

  /// An empty list is left out.
  mutating func add(_ name: String, objects: [JSONObjectWriter]) {
    if objects.isEmpty { return }
    begin(name)
    append(list: objects) { $0.bytes += $1.bytes + [UInt8(ascii: "}")] }
  }

  /// An empty dictionary is left out; members are in the order of the names' bytes.
  package mutating func add(_ name: String, texts: [String: String]) {
    if texts.isEmpty { return }
    var object = JSONObjectWriter()
    for (name, text) in texts.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
      object.add(name, text)
    }
    begin(name)
    bytes += object.bytes + [UInt8(ascii: "}")]
  }

  private mutating func begin(_ name: String) {
    if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
    JSONText.append(quoting: name, to: &bytes)
    bytes.append(UInt8(ascii: ":"))
  }

  private mutating func append<T>(
    list: [T], _ appendOne: (inout JSONObjectWriter, T) -> Void
  ) {
    bytes.append(UInt8(ascii: "["))
    for (index, element) in list.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      appendOne(&self, element)
    }
    bytes.append(UInt8(ascii: "]"))
  }
}

/// Base64 (RFC 4648, section 4) in its canonical form: padded, without other characters, and with
/// unused bits zero.
package enum Base64Text {
  /// The text of bytes.
  package static func encode(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

  /// The bytes of a text; nil if it differs from the output of ``encode(_:)``.
  package static func decode(_ text: String) -> [UInt8]? {
    guard let data = Data(base64Encoded: text), data.base64EncodedString() == text else {
      return nil
    }
    return [UInt8](data)
  }
}
