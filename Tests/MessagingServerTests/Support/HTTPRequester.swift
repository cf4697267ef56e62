import NIOCore
import NIOHTTP1
import NIOPosix

/// Sends HTTP/1.1 requests as they are told, each on a new connection.
enum HTTPRequester {
  struct Answer: Sendable {
    let status: Int
    let headers: HTTPHeaders
    let body: [UInt8]

    var text: String { String(decoding: body, as: UTF8.self) }
  }

  /// The server closed the connection without a whole answer.
  struct NoAnswer: Error {}

  /// - Parameter origin: `HOST:PORT`.
  static func send(
    _ method: String, _ target: String, to origin: String,
    headers: [(name: String, value: String)] = [], body: [UInt8] = []
  ) async throws -> Answer {
    let parts = origin.split(separator: ":")
    let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .connect(host: String(parts[0]), port: Int(parts[1]) ?? 0) { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHTTPClientHandlers()
          return try NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart>(
            wrappingChannelSynchronously: channel)
        }
      }
    return try await channel.executeThenClose { inbound, outbound in
      var head = HTTPRequestHead(
        version: .http1_1, method: HTTPMethod(rawValue: method), uri: target)
      head.headers = HTTPHeaders([("Host", origin)] + headers)
      if !body.isEmpty { head.headers.add(name: "Content-Length", value: "\(body.count)") }
      // The server can answer and close before it has read everything.
      try? await outbound.write(.head(head))
      if !body.isEmpty { try? await outbound.write(.body(.byteBuffer(ByteBuffer(bytes: body)))) }
      try? await outbound.write(.end(nil))
      var status = 0
      var fields = HTTPHeaders()
      var bytes: [UInt8] = []
      for try await part in inbound {
        switch part {
        case .head(let head): (status, fields) = (Int(head.status.code), head.headers)
        case .body(let buffer): bytes += buffer.readableBytesView
        case .end: return Answer(status: status, headers: fields, body: bytes)
        }
      }
      throw NoAnswer()
    }
  }
}
