/// One line of a client, `ID PAYLOAD`, and what becomes of it.
///
/// The id is the client's own name for the message: 1 to 64 letters, digits and `.:_-`. The payload is
/// everything behind the first space, byte for byte; it may be empty and cannot hold a newline.
struct Request {
  private static let maximumIDByteCount = 64
  /// An id and its space.
  static let longestPrefix = maximumIDByteCount + 1

  let id: String
  let payload: [UInt8]
  var timetoken = ""
  /// The word that says why it was not taken; nil if it was.
  var refusal: String?

  init(_ line: Line, maximumPayloadByteCount: Int) {
    let id = line.bytes.prefix { $0 != UInt8(ascii: " ") }
    let isNamed = (1...Self.maximumIDByteCount).contains(id.count) && id.allSatisfy(Self.isAllowed)
    // What cannot be told from an answer's own words is not repeated in it.
    self.id = isNamed ? String(decoding: id, as: UTF8.self) : "-"
    payload = Array(line.bytes.dropFirst(id.count + 1))
    if !isNamed || (id.count == line.bytes.count && !line.isCut) {
      refusal = "malformed"
    } else if line.isCut || payload.count > maximumPayloadByteCount {
      refusal = "too-large"
    }
  }

  /// `ok ID TIMETOKEN`, or `no ID WORD`.
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
