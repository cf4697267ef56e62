extension MessagingClientError {
  /// The header by which our server gives an ERROR frame a status, with the numbers of HTTP.
  static let stompStatusHeader = "datavault-status"

  /// What the frame ERROR says.
  ///
  /// - Parameter isConnecting: whether it answers CONNECT, so that a refusal is one of the login.
  init(_ frame: STOMPFrame, isConnecting: Bool) {
    let body = String(decoding: frame.body.prefix(400), as: UTF8.self)
    let message = frame["message"] ?? body
    let status = frame[Self.stompStatusHeader].flatMap { $0.utf8.count == 3 ? Int($0) : nil }
    let code = status.map(Self.code) ?? Self.code("\(message) \(body)".lowercased())
    self.init(
      isConnecting && code == .forbidden ? .unauthenticated : code,
      "the server ended the connection: \(EscapedText(message).text)", status: status)
  }

  private static func code(_ status: Int) -> Code {
    switch status {
    case 401: .unauthenticated
    case 403: .forbidden
    case 409: .unavailable
    case 505: .refused
    case 408, 429, 500...599: .busy
    default: .refused
    }
  }

  /// The messages of servers that give no status: those of docs/reference/stomp.md, and what others call a refused right.
  private static func code(_ message: String) -> Code {
    let codes: [(text: String, code: Code)] = [
      ("access refused", .forbidden), ("access_refused", .forbidden),
      ("the server is locked", .busy), ("the server stops", .busy),
      ("too many wrong passwords", .busy), ("too many logins", .busy),
      ("storage quota exceeded", .busy), ("too many messages wait for the disk", .busy),
      ("the server cannot do this now", .busy), ("a frame takes too long", .busy),
      ("the client has sent no heart-beat", .busy), ("the client reads too slowly", .busy),
      ("a lease has ended", .unavailable),
    ]
    return codes.first { message.contains($0.text) }?.code ?? .refused
  }
}
