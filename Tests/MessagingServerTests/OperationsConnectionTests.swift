import Foundation
import Logging
import NIOCore
import NIOEmbedded
import Synchronization
import TestSupport
import Testing

@testable import MessagingServer

/// What a connection reports of its requests.
@Suite struct OperationsConnectionTests {
  private let folder = ScratchFolder()
  private let writer: LineWriter
  private let registry = PrometheusRegistry()

  init() throws {
    writer = try LineWriter(folder("log"), .json)
  }

  private func connect(
    _ limits: HTTPLimits = HTTPLimits(), _ answer: @escaping @Sendable (HTTPExchange) -> Void
  ) throws -> EmbeddedChannel {
    let channel = EmbeddedChannel()
    let operations = ServerOperations(
      registry: registry, accessLog: AccessLog(writer),
      logger: Logger(label: "test") { [writer] in
        LineLogHandler($0, .text, logLevel: .trace, to: writer)
      })
    try HTTPConnection.configure(
      channel,
      HTTPConnection(limits: limits, isProtected: true, operations: operations, answer: answer))
    try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    return channel
  }

  private func send(_ text: String, to channel: EmbeddedChannel) throws {
    try channel.writeInbound(ByteBuffer(string: text))
  }

  private func log() async -> [String] {
    await writer.flush(within: .seconds(60))
    return (folder.contents(of: "log") ?? "").split(separator: "\n").map(String.init)
  }

  @Test func `HTTPConnection logs a request by its template, without what its client sent`()
    async throws
  {
    let channel = try connect { exchange in
      exchange.describe(.publish)
      exchange.answer(HTTPResponse(200, "[1]"))
    }
    let words = ["p-key", "s-key", "channel1", "pay1oad", "secret", "alice"]
    try send(
      "GET /publish/p-key/s-key/0/channel1/0/%22pay1oad%22?auth=secret&uuid=alice HTTP/1.1\r\nHost: a\r\n\r\n",
      to: channel)
    let lines = await log()
    #expect(lines.count == 1)
    #expect(lines.first?.contains(#""route":"/publish/{pub}/{sub}/0/{channel}/0""#) == true)
    #expect(
      lines.first?.contains(
        #""method":"GET","application":null,"status":200,"bytesIn":70,"bytesOut":3"#) == true)
    let everything = lines.joined() + registry.text
    for word in words { #expect(!everything.contains(word)) }
  }

  @Test func `HTTPConnection logs a client that left before its answer with 499`() async throws {
    let channel = try connect { $0.describe(.subscribe) }
    try send("GET /v2/subscribe/s/c/0 HTTP/1.1\r\nHost: a\r\n\r\n", to: channel)
    channel.pipeline.fireChannelInactive()
    let lines = await log()
    #expect(lines.count == 1)
    #expect(lines.first?.contains(#""status":499"#) == true)
  }

  @Test(arguments: [
    ("GET /\(String(repeating: "a", count: 120_000)) HTTP/1.1\r\n", 414), ("secret\r\n\r\n", 400),
    ("SECRET /secret HTTP/9\r\n\r\n", 400),
    ("POST /secret HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n", 413),
  ])
  func `HTTPConnection logs a request that it refuses`(text: String, status: Int) async throws {
    let channel = try connect { $0.answer(HTTPResponse(200, "")) }
    try? send(text, to: channel)
    let lines = await log()
    #expect(lines.count == 1)
    #expect(lines.first?.contains("\"status\":\(status)") == true)
    #expect(lines.first?.contains(#""route":"other""#) == true)
    #expect(lines.first?.lowercased().contains("secret") == false)
  }

  @Test func `HTTPConnection answers 429 to a connection that sends too many requests`()
    async throws
  {
    var limits = HTTPLimits()
    limits.rate.requestsPerSecond = 1
    limits.rate.burstCount = 3
    let channel = try connect(limits) { $0.answer(HTTPResponse(200, "[1]")) }
    for _ in 0..<5 { try send("GET /time/0 HTTP/1.1\r\nHost: a\r\n\r\n", to: channel) }
    var answers = ""
    while let buffer = try channel.readOutbound(as: ByteBuffer.self) {
      answers += String(buffer: buffer)
    }
    let statuses = answers.split(separator: "HTTP/1.1 ").map { $0.prefix(3) }
    #expect(statuses == ["200", "200", "200", "429", "429"])
    #expect(answers.contains("Retry-After: 1\r\n"))
    let isActive = channel.isActive
    #expect(isActive)
    #expect(await log().filter { $0.contains(#""status":429"#) }.count == 2)
    #expect(registry.text.contains(#"datavault_server_refusals_total{reason="rate"} 2"#))
  }

  @Test func `HTTPConnection names a method that it does not know only as other`() async throws {
    let channel = try connect { $0.answer(HTTPResponse(200, "")) }
    try send("PROPFIND / HTTP/1.1\r\nHost: a\r\n\r\n", to: channel)
    #expect(await log().first?.contains(#""method":"other""#) == true)
  }

  @Test func `HTTPConnection answers any number of requests behind one that waits without nesting`()
    throws
  {
    let first = Mutex<HTTPExchange?>(nil)
    let channel = try connect { exchange in
      let isFirst = first.withLock { held in
        defer { held = held ?? exchange }
        return held == nil
      }
      if !isFirst { exchange.answer(HTTPResponse(200, "")) }
    }
    let request = "GET /time/0 HTTP/1.1\r\nHost: a\r\n\r\n"
    try send(String(repeating: request, count: 20_000), to: channel)
    first.withLock(\.self)?.answer(HTTPResponse(200, ""))
    var count = 0
    while let buffer = try channel.readOutbound(as: ByteBuffer.self) {
      count += String(buffer: buffer).hasPrefix("HTTP/1.1 ") ? 1 : 0
    }
    #expect(count == 20_000)
  }
}
