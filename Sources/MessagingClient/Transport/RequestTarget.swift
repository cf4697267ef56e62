internal import VaultCrypto

/// The path and the query of a request, percent-encoded (RFC 3986, 2.1); values can be secrets.
struct RequestTarget {
  /// Without the last segment, if that is confidential: locations, errors and logs have this path alone.
  private(set) var path: String
  private var confidentialSegment: SecretText = ""
  private(set) var parameters: [(name: String, value: SecretText)] = []

  /// - Parameter segments: each is encoded, so that none adds a segment or a parameter.
  init(_ segments: [String]) { path = segments.map { "/" + Self.encode($0) }.joined() }

  /// - Parameter path: already encoded.
  init(path: String) { self.path = path }

  /// Adds a last segment to the path.
  mutating func append(confidential segment: SharedSecret) {
    confidentialSegment = "/" + SecretText(Self.encode(segment))
  }

  /// Adds a last segment that is a payload: it is no secret of the client's, and can go wherever a message can.
  mutating func append(payload segment: String) {
    confidentialSegment = SecretText("/" + Self.encode(segment))
  }

  /// The path with the confidential segment.
  var wholePath: SecretText { SecretText(path) + confidentialSegment }

  mutating func add(_ name: String, _ value: String?) {
    guard let value else { return }
    parameters.append((name, SecretText(Self.encode(value))))
  }

  mutating func add(_ name: String, _ secret: SharedSecret?) {
    guard let secret else { return }
    parameters.append((name, SecretText(Self.encode(secret))))
  }

  mutating func sort() { parameters.sort { $0.name < $1.name } }

  /// `name=value` for each parameter, with `&` between them.
  var query: SecretText {
    parameters.enumerated().reduce("") { query, parameter in
      query + SecretText((parameter.offset == 0 ? "" : "&") + parameter.element.name + "=")
        + parameter.element.value
    }
  }

  var text: SecretText { parameters.isEmpty ? wholePath : wholePath + "?" + query }

  // MARK: - Encoding

  /// Everything but letters, digits, `-`, `.` and `_` is encoded, as PubNub signs it.
  static func encode(_ text: String) -> String {
    var encoded: [UInt8] = []
    for byte in text.utf8 { append(byte, to: &encoded) }
    return String(decoding: encoded, as: UTF8.self)
  }

  private static func encode(_ secret: SharedSecret) -> SharedSecret {
    let count = secret.withBytes { bytes in
      (0..<bytes.byteCount).reduce(0) { $0 + (isUnreserved(bytes[$1]) ? 1 : 3) }
    }
    var encoded = SecretBytes(zeroCount: count)
    secret.withBytes { bytes in
      unsafe encoded.withUnsafeMutableBytes { target in
        var position = 0
        for index in 0..<bytes.byteCount {
          for byte in code(of: bytes[index]) {
            unsafe target[position] = byte
            position += 1
          }
        }
      }
    }
    return SharedSecret(encoded)
  }

  private static func append(_ byte: UInt8, to encoded: inout [UInt8]) {
    if isUnreserved(byte) { encoded.append(byte) } else { encoded += code(of: byte) }
  }

  private static func code(of byte: UInt8) -> [UInt8] {
    let digits = Array("0123456789ABCDEF".utf8)
    return isUnreserved(byte)
      ? [byte] : [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
  }

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
      UInt8(ascii: "_"):
      true
    default: false
    }
  }
}
