internal import NIOCore

/// A frame of STOMP 1.2 (https://stomp.github.io/stomp-specification-1.2.html): a command, headers and a body.
struct STOMPFrame: Sendable, Equatable {
  struct Header: Sendable, Equatable {
    let name: String
    let value: String
  }

  var command: String
  private(set) var headers: [Header] = []
  var body: [UInt8] = []

  init(_ command: String, _ headers: [(String, String)] = [], body: [UInt8] = []) {
    self.command = command
    self.headers = headers.map { Header(name: $0, value: $1) }
    self.body = body
  }

  /// The value of a header; of repeated ones, the first counts.
  subscript(name: String) -> String? {
    headers.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }

  mutating func append(_ name: String, _ value: String) {
    headers.append(Header(name: name, value: value))
  }

  /// Whether headers have no escapes, so that clients and servers of 1.0 can read them.
  static func isUnescaped(_ command: String) -> Bool {
    command == "CONNECT" || command == "CONNECTED"
  }

  // MARK: - Encoding

  /// The bytes of the frame.
  ///
  /// - Parameter secrets: more headers, whose values are written when the frame is sent.
  /// - Throws: `invalidArgument` for a header that no frame can have.
  func encoded(
    secrets: [(name: String, value: SecretText)] = []
  ) throws(MessagingClientError) -> EncodedSTOMPFrame {
    var text = command + "\n"
    for header in headers {
      text += try encoded(header.name, isName: true) + ":" + encoded(header.value, isName: false)
      text += "\n"
    }
    var head = SecretText(text)
    for secret in secrets {
      guard secret.value.isOneLine else { throw Self.notAllowed }
      head += SecretText("\(secret.name):") + secret.value + "\n"
    }
    return EncodedSTOMPFrame(command, head: head + "\n", body: body)
  }

  private static let notAllowed = MessagingClientError(
    .invalidArgument, "a header has characters that no frame can have")

  private func encoded(_ text: String, isName: Bool) throws(MessagingClientError) -> String {
    guard !text.utf8.contains(0), !isName || !text.isEmpty else { throw Self.notAllowed }
    // Most texts have nothing to escape.
    guard text.utf8.contains(where: Self.isSpecial) else { return text }
    var encoded = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\n", "\r":
        if Self.isUnescaped(command) { throw Self.notAllowed }
        encoded += scalar == "\n" ? "\\n" : "\\r"
      case ":" where Self.isUnescaped(command):
        if isName { throw Self.notAllowed }
        encoded += ":"
      case ":": encoded += "\\c"
      case "\\" where !Self.isUnescaped(command): encoded += "\\\\"
      default: encoded.unicodeScalars.append(scalar)
      }
    }
    return encoded
  }

  private static func isSpecial(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") || byte == UInt8(ascii: ":")
      || byte == UInt8(ascii: "\\")
  }
}

/// The bytes of a frame, in which secrets are written last.
struct EncodedSTOMPFrame: Sendable {
  /// What keeps a connection alive while there is no frame.
  static let heartBeat = EncodedSTOMPFrame(text: "\n")

  /// The command, or what else it is.
  let kind: String
  private let head: SecretText
  private let body: [UInt8]
  private let isFrame: Bool

  init(_ command: String, head: SecretText, body: [UInt8]) {
    (kind, self.head, self.body, isFrame) = (command, head, body, true)
  }

  private init(text: SecretText) { (kind, head, body, isFrame) = ("heart-beat", text, [], false) }

  var byteCount: Int { head.byteCount + body.count + (isFrame ? 1 : 0) }

  /// Whether all bytes are UTF-8, as a text message of a WebSocket must be.
  var isText: Bool { String(validating: body, as: UTF8.self) != nil }

  func write(to buffer: inout ByteBuffer) {
    head.write(to: &buffer)
    buffer.writeBytes(body)
    if isFrame { buffer.writeInteger(UInt8(0)) }
  }
}
