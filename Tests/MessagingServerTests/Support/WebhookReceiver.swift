import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import StrictJSON
import Synchronization
import TestSupport
import Testing

/// A server on this machine that takes webhooks, and answers as it is told.
final class WebhookReceiver: Sendable {
  /// What came with a request.
  struct Request: Sendable {
    let method: String
    let target: String
    let headers: [String: String]
    let body: [UInt8]

    var text: String { String(decoding: body, as: UTF8.self) }

    /// The events of the body, as they were written.
    var events: [String] {
      guard case .array(let events)? = (try? JSONReader.value(body))?.member("events") else {
        return []
      }
      return events.map(\.text)
    }
  }

  /// What is answered; nil for nothing at all.
  struct Answer: Sendable {
    var status = 200
    var headers: [(String, String)] = []
    var byteCount = 0
    /// Whether the body has its end.
    var hasEnd = true
  }

  private let channel: any Channel
  private let box: Box

  private final class Box: Sendable {
    let requests = Mutex<[Request]>([])
    let answer: @Sendable (Request) -> Answer?

    init(_ answer: @escaping @Sendable (Request) -> Answer?) { self.answer = answer }
  }

  /// Listens on a port that the system has chosen.
  static func start(
    tls: NIOSSLContext? = nil,
    _ answer: @escaping @Sendable (Request) -> Answer? = { _ in Answer() }
  ) async throws -> WebhookReceiver {
    let box = Box(answer)
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          if let tls {
            try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls))
          }
          try channel.pipeline.syncOperations.configureHTTPServerPipeline()
          try channel.pipeline.syncOperations.addHandler(Handler(box))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    return WebhookReceiver(channel, box)
  }

  private init(_ channel: any Channel, _ box: Box) {
    self.channel = channel
    self.box = box
  }

  deinit { channel.close(promise: nil) }

  var port: Int { channel.localAddress?.port ?? 0 }
  var url: String { "http://127.0.0.1:\(port)/hook?key=value" }
  var requests: [Request] { box.requests.withLock { $0 } }
  /// All events that came, in their order.
  var events: [String] { requests.flatMap(\.events) }

  /// Waits until so many events came.
  func waitForEvents(_ count: Int) async throws -> [String] {
    try await eventually("\(count) events, not \(events)") { events.count >= count }
    return events
  }

  /// Waits until so many requests came, also again after the lease of an attempt that was under way.
  func waitForRequests(_ count: Int) async throws {
    try await eventually("\(count) requests, not \(requests.count)") { requests.count >= count }
  }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let box: Box
    private var head: HTTPRequestHead?
    private var body: [UInt8] = []

    init(_ box: Box) { self.box = box }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      switch unwrapInboundIn(data) {
      case .head(let head): self.head = head
      case .body(let bytes): body += bytes.readableBytesView
      case .end:
        guard let head else { return }
        let request = Request(
          method: head.method.rawValue, target: head.uri,
          headers: Dictionary(
            head.headers.map { ($0.name, $0.value) }, uniquingKeysWith: { "\($0), \($1)" }),
          body: body)
        box.requests.withLock { $0.append(request) }
        guard let answer = box.answer(request) else { return }
        var response = HTTPResponseHead(
          version: .http1_1, status: HTTPResponseStatus(statusCode: answer.status))
        response.headers.add(
          name: "Content-Length", value: "\(answer.byteCount + (answer.hasEnd ? 0 : 1))")
        for (name, value) in answer.headers { response.headers.add(name: name, value: value) }
        context.write(wrapOutboundOut(.head(response)), promise: nil)
        let bytes = ByteBuffer(repeating: 0x78, count: answer.byteCount)
        context.write(wrapOutboundOut(.body(.byteBuffer(bytes))), promise: nil)
        if answer.hasEnd { context.write(wrapOutboundOut(.end(nil)), promise: nil) }
        context.flush()
      }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      context.close(promise: nil)
    }
  }
}
