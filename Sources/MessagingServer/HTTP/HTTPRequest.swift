package import AccessControl
internal import NIOCore
internal import NIOHTTP1

/// A request as its connection has read it.
struct HTTPRequest: Sendable {
  /// The method, in upper case.
  let method: String
  /// The path and the query, still encoded.
  let target: [UInt8]
  /// The body as it was sent, possibly compressed.
  let body: [UInt8]
  let headers: HTTPHeaders
  /// Whether no one between the client and this server can read or change the request: TLS, loopback or a Unix socket.
  let isProtected: Bool
  /// Where the request comes from, to count failed logins by.
  let source: LoginSource

  init(
    method: String, target: [UInt8], body: [UInt8] = [], headers: HTTPHeaders = [:],
    isProtected: Bool = true, source: LoginSource = LoginSource(nil)
  ) {
    self.method = method
    self.target = target
    self.body = body
    self.headers = headers
    self.isProtected = isProtected
    self.source = source
  }

  /// What the fields `Authorization` say; nil if there is none.
  var authorization: Authorization? { Authorization.read(headers["authorization"]) }

  /// The id of a publication; nil if it has none.
  func deduplicationID() throws(DeduplicationHeader.Fault) -> String? {
    try DeduplicationHeader.id(of: headers[DeduplicationHeader.id])
  }
}

/// An answer, with the headers that differ from one to the next.
package struct HTTPResponse: Sendable, Equatable {
  /// PubNub's content type; its JavaScript client refuses an answer without one.
  package static let javaScript = "text/javascript; charset=\"UTF-8\""
  package static let text = "text/plain; charset=utf-8"

  package var status: Int
  package var body: [UInt8]
  package var contentType = HTTPResponse.javaScript
  /// Seconds after which a client can ask again; default: nil, not said.
  package var retryAfter: Int?
  /// Whether it says for how long this server knows deduplication ids; default: false.
  package var saysDeduplicationWindow = false
  /// The challenges of a 401, each in a field `WWW-Authenticate` of its own.
  package var challenges: [Challenge] = []
  /// Methods for `Access-Control-Allow-Methods`.
  package var allowedMethods = "GET, POST, DELETE, OPTIONS"
  /// Whether web pages of any origin can read it; default: true.
  package var allowsOtherOrigins = true

  package init(_ status: Int, _ body: [UInt8]) {
    self.status = status
    self.body = body
  }

  package init(_ status: Int, _ text: String) { self.init(status, Array(text.utf8)) }

  /// The answer to OPTIONS: what a web page of any origin can send.
  package static var preflight: HTTPResponse { HTTPResponse(200, "") }

  /// Writes the response to a request with this method as HTTP/1.1.
  func write(to buffer: inout ByteBuffer, answering method: String, keepsAlive: Bool) {
    let reason = HTTPResponseStatus(statusCode: status).reasonPhrase
    buffer.writeString("HTTP/1.1 \(status) \(reason)\r\nContent-Type: \(contentType)\r\n")
    if allowsOtherOrigins {
      buffer.writeString(
        """
        Access-Control-Allow-Origin: *\r
        Access-Control-Allow-Methods: \(allowedMethods)\r\n
        """)
    }
    buffer.writeString("Cache-Control: no-cache\r\n")
    if method == "OPTIONS" {
      buffer.writeString(
        """
        Access-Control-Allow-Headers: Content-Type, Content-Encoding, Accept, Authorization, \
        X-Requested-With\r
        Access-Control-Max-Age: 3600\r\n
        """)
    }
    for challenge in challenges {
      buffer.writeString("WWW-Authenticate: \(challenge.field)\r\n")
    }
    if !challenges.isEmpty, allowsOtherOrigins {
      buffer.writeString("Access-Control-Expose-Headers: WWW-Authenticate\r\n")
    }
    if saysDeduplicationWindow {
      buffer.writeString("\(DeduplicationHeader.window): \(DeduplicationHeader.seconds)\r\n")
    }
    if let retryAfter { buffer.writeString("Retry-After: \(retryAfter)\r\n") }
    buffer.writeString(
      """
      Connection: \(keepsAlive ? "keep-alive" : "close")\r
      Content-Length: \(body.count)\r\n\r\n
      """)
    // A client that asks with HEAD would take a body for the beginning of the next answer.
    if method != "HEAD" { buffer.writeBytes(body) }
  }
}
