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

  /// How servers that give no status refuse a login and a right: RabbitMQ, then ActiveMQ.
  private static let refusals = [
    "access refused for user", "access_refused", "password is invalid", "is not authorized to",
  ]

  private static func code(_ message: String) -> Code {
    refusals.contains { message.contains($0) } ? .forbidden : .refused
  }
}
