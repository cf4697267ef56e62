/// What a client of WebSocket sends (RFC 6455).
extension Service {
  /// The upgrade of a connection, with the key of the RFC's example, because the answer to it is not verified.
  static func upgrade(_ target: String) -> GreetingStep {
    GreetingStep(
      request: Array(
        """
        GET \(target) HTTP/1.1\r
        Host: 127.0.0.1\r
        Upgrade: websocket\r
        Connection: Upgrade\r
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
        Sec-WebSocket-Version: 13\r\n\r\n
        """.utf8),
      answer: " 101 ")
  }

  /// A frame with a text of less than 126 bytes.
  ///
  /// The mask is zero, so that the text stays as it is.
  static func webSocketFrame(_ text: String) -> [UInt8] {
    let (finalText, masked): (UInt8, UInt8) = (0x81, 0x80)
    return [finalText, masked | UInt8(text.utf8.count), 0, 0, 0, 0] + Array(text.utf8)
  }
}
