/// One line of a client, `ID PAYLOAD`, and its result.
///
/// The client chooses the id: 1 to 64 letters, digits and `.:_-`. The payload is everything after
/// the first space, byte for byte. It can be empty and cannot contain a newline.
struct Request {
  private static let maximumIDByteCount = 64
  /// The maximum length of an id and its space, in bytes.
  static let longestPrefix = maximumIDByteCount + 1

  let id: String
  let payload: [UInt8]
  var timetoken = ""
  /// The reason of a refusal, as one word; nil if the line was accepted.
  var refusal: String?

  init(_ line: Line, maximumPayloadByteCount: Int) {
    let id = line.bytes.prefix { $0 != UInt8(ascii: " ") }
    let isNamed = (1...Self.maximumIDByteCount).contains(id.count) && id.allSatisfy(Self.isAllowed)
    // The answer does not repeat an invalid id, because it could look like other parts of the
    // answer.
    self.id = isNamed ? String(decoding: id, as: UTF8.self) : "-"
    payload = Array(line.bytes.dropFirst(id.count + 1))
    if !isNamed || (id.count == line.bytes.count && !line.isCut) {
      refusal = "malformed"
    } else if line.isCut || payload.count > maximumPayloadByteCount {
      refusal = "too-large"
    }
  }

  /// The answer: `ok ID TIMETOKEN` or `no ID WORD`.
  var answer: String {
    if let refusal { "no \(id) \(refusal)" } else { "ok \(id) \(timetoken)" }
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default:
      [UInt8(ascii: "."), UInt8(ascii: ":"), UInt8(ascii: "_"), UInt8(ascii: "-")].contains(byte)
    }
  }
}
