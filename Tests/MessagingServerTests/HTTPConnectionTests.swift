import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import MessagingServer

/// Requests as a connection has handed them out, to be answered by a test.
private final class Exchanges: Sendable {
  private let list = Mutex<[HTTPExchange]>([])

  func add(_ exchange: HTTPExchange) { list.withLock { $0.append(exchange) } }
  var all: [HTTPExchange] { list.withLock { $0 } }
}

@Suite struct HTTPConnectionTests {
  private let exchanges = Exchanges()
  private let channel = EmbeddedChannel()
  private let ledger = MemoryLedger(limitByteCount: 64 << 20)

  init() throws {
    let exchanges = exchanges
    try HTTPConnection.configure(
      channel,
      HTTPConnection(
        limits: HTTPLimits(), isProtected: true, operations: ServerOperations(),
        memory: ledger.open(channel),
        answer: { exchanges.add($0) }))
    try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
  }

  private func send(_ text: String) throws {
    try channel.writeInbound(ByteBuffer(string: text))
  }

  private func output() throws -> String {
    var text = ""
    while let buffer = try channel.readOutbound(as: ByteBuffer.self) {
      text += String(buffer: buffer)
    }
    return text
  }

  @Test func `a request is handed out whole, with its target as it was sent`() throws {
    try send("POST /a%2Fb?x=%2C&y HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel")
    #expect(exchanges.all.isEmpty)
    try send("lo")
    let request = try #require(exchanges.all.first).request
    #expect(request.method == "POST")
    #expect(String(decoding: request.target, as: UTF8.self) == "/a%2Fb?x=%2C&y")
    #expect(String(decoding: request.body, as: UTF8.self) == "hello")
  }

  @Test func `every answer has a content type, its length and what web pages need`() throws {
    try send("GET /time/0 HTTP/1.1\r\nHost: a\r\n\r\n")
    exchanges.all[0].answer(HTTPResponse(200, "[1]"))
    let answer = try output()
    #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
    #expect(answer.contains("Content-Type: text/javascript; charset=\"UTF-8\"\r\n"))
    #expect(answer.contains("Access-Control-Allow-Origin: *\r\n"))
    #expect(answer.contains("Content-Length: 3\r\n"))
    #expect(answer.contains("Connection: keep-alive\r\n"))
    #expect(answer.hasSuffix("\r\n\r\n[1]"))
    #expect(channel.isActive)
  }

  @Test func `requests that come together are answered in their order, one at a time`() throws {
    try send(
      "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
    #expect(exchanges.all.count == 1)
    exchanges.all[0].answer(HTTPResponse(200, "one"))
    #expect(exchanges.all.count == 2)
    exchanges.all[1].answer(HTTPResponse(200, "two"))
    let answers = try output()
    #expect(answers.contains("one"))
    #expect(answers.hasSuffix("two"))
  }

  @Test(arguments: [
    "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n\r\n\r\n",
    "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n0\r\n\r\n",
  ])
  func `HTTPConnection decodes nothing behind a request until it is answered`(
    request: String
  ) throws {
    let bytes = Array("\(request)\(request)\u{1}".utf8)
    for pieceByteCount in [1, 7, bytes.count] {
      let test = try HTTPConnectionTests()
      for start in stride(from: 0, to: bytes.count, by: pieceByteCount) {
        try test.channel.writeInbound(ByteBuffer(bytes: bytes[start...].prefix(pieceByteCount)))
      }
      for number in 0..<2 {
        try #require(test.exchanges.all.count == number + 1)
        test.exchanges.all[number].answer(HTTPResponse(200, "\(number)"))
      }
      #expect(test.exchanges.all[0].request.body == test.exchanges.all[1].request.body)
      let answers = try? test.output().split(separator: "HTTP/1.1 ").map { $0.prefix(3) }
      #expect(answers == ["200", "200", "400"])
    }
  }

  @Test
  func `a request waits until the last answer is read, and an unread one closes the connection`()
    throws
  {
    try send(
      "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\n"
    )
    let reader = try SlowReader.add(to: channel)
    exchanges.all[0].answer(HTTPResponse(200, "one"))
    #expect(exchanges.all.count == 1)
    reader.read()
    #expect(exchanges.all.count == 2)
    exchanges.all[1].answer(HTTPResponse(200, "two"))
    #expect(exchanges.all.count == 2)
    channel.embeddedEventLoop.advanceTime(by: .seconds(30))
    #expect(!channel.isActive)
  }

  @Test func `HTTPConnection holds a request, what waits behind it, and an unread answer`() throws {
    let target = "/" + String(repeating: "a", count: 4095)
    let request = "GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n"
    try send(String(request.prefix(5)))
    try send(String(request.dropFirst(5).prefix(4093)))
    #expect(ledger.byteCount == 4096, "a head that has not ended")
    try send(String(request.dropFirst(4098)))
    let held = ledger.byteCount
    #expect(held == 8 * 4096)
    try send(String(repeating: request, count: 4))
    #expect(ledger.byteCount >= held + 16_384)
    let reader = try SlowReader.add(to: channel)
    exchanges.all[0].answer(HTTPResponse(200, [UInt8](repeating: 0x78, count: 8192)))
    #expect(ledger.byteCount >= 16_384 + 8192)
    for number in 1..<5 {
      reader.read()
      exchanges.all[number].answer(HTTPResponse(200, ""))
    }
    reader.read()
    #expect(ledger.byteCount == 0)
  }

  @Test func `HTTPConnection answers 503 when it holds too much memory, and closes`() throws {
    try send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n")
    channel.pipeline.fireUserInboundEventTriggered(MemoryLedger.End())
    let answer = try output()
    #expect(answer.hasPrefix("HTTP/1.1 503 "))
    #expect(answer.contains("Retry-After: 1\r\n"))
    exchanges.all[0].answer(HTTPResponse(200, "late"))
    #expect(try output().isEmpty)
    #expect(!channel.isActive)
  }

  @Test func `HTTPConnection closes when it holds an answer that its client does not read`() throws
  {
    try send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n")
    _ = try SlowReader.add(to: channel)
    exchanges.all[0].answer(HTTPResponse(200, "one"))
    channel.pipeline.fireUserInboundEventTriggered(MemoryLedger.End())
    #expect(!channel.isActive)
  }

  @Test func `HTTPConnection waits for a client that reads a long answer slowly`() throws {
    try send("GET /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    let reader = try SlowReader.add(to: channel)
    exchanges.all[0].answer(HTTPResponse(200, [UInt8](repeating: 0x78, count: 200 << 10)))
    for _ in 0..<4 {
      channel.embeddedEventLoop.advanceTime(by: .seconds(29))
      #expect(channel.isActive)
      #expect(reader.heldCount == 1)
      reader.read()
    }
    #expect(!channel.isActive)
    #expect(try output().utf8.count > 200 << 10)
  }

  @Test func `an answer to HEAD has the length of its body, and no body`() throws {
    try send("HEAD /1 HTTP/1.1\r\nHost: a\r\n\r\n")
    exchanges.all[0].answer(HTTPResponse(404, "none"))
    let answer = try output()
    #expect(answer.contains("Content-Length: 4\r\n"))
    #expect(answer.hasSuffix("\r\n\r\n"))
  }

  @Test(arguments: [
    "GET /1 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
  ])
  func `a connection ends with the answer to a request for another protocol`(
    request: String
  ) throws {
    try send(request)
    exchanges.all[0].answer(HTTPResponse(200, "[1]"))
    #expect(try output().contains("Connection: close\r\n"))
    #expect(!channel.isActive)
  }

  @Test func `a target of the greatest length is handed out, with many header fields`() throws {
    let target = "/" + String(repeating: "a", count: HTTPLimits().targetByteCount - 1)
    let fields =
      "Host: a\r\n" + (1..<99).map { "A\($0): \(String(repeating: "b", count: 600))\r\n" }.joined()
    try send("GET \(target) HTTP/1.1\r\n\(fields)\r\n")
    #expect(exchanges.all.map(\.request.target.count) == [target.utf8.count])
  }

  @Test func `a second answer to a request is not sent`() throws {
    try send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n")
    exchanges.all[0].answer(HTTPResponse(200, "one"))
    _ = try output()
    exchanges.all[0].answer(HTTPResponse(200, "two"))
    #expect(try output().isEmpty)
  }

  @Test func `a client that leaves ends its exchange`() async throws {
    try send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n")
    let left = Mutex(0)
    await confirmation { confirmation in
      exchanges.all[0].onAbandon { confirmation() }
      channel.pipeline.fireChannelInactive()
    }
    _ = left
    exchanges.all[0].answer(HTTPResponse(200, "late"))
    #expect(try output().isEmpty)
  }

  @Test func `a target that is too long is answered with 414 and the connection closes`() throws {
    let target = String(repeating: "a", count: HTTPLimits().targetByteCount)
    try send("GET /\(target) HTTP/1.1\r\nHost: a\r\n\r\n")
    let answer = try output()
    #expect(answer.hasPrefix("HTTP/1.1 414 "))
    #expect(answer.contains("Request URI Too Long"))
    #expect(exchanges.all.isEmpty)
    channel.embeddedEventLoop.advanceTime(by: .seconds(1))
    #expect(!channel.isActive)
  }

  @Test func `a target that the decoder gives up on is answered with 414 too`() throws {
    let target = String(repeating: "a", count: 1 << 20)
    try? send("GET /\(target) HTTP/1.1\r\nHost: a\r\n\r\n")
    #expect(try output().hasPrefix("HTTP/1.1 414 "))
  }

  @Test(arguments: ["Content-Length: 1000000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"])
  func `a body that is too large is answered with 413 and the connection closes`(
    head: String
  ) throws {
    try send("POST /publish HTTP/1.1\r\nHost: a\r\n\(head)")
    let piece = String(repeating: "a", count: 16_384)
    for _ in 0..<9 where channel.isActive { try? send("4000\r\n\(piece)\r\n") }
    #expect(try output().hasPrefix("HTTP/1.1 413 "))
    channel.embeddedEventLoop.advanceTime(by: .seconds(1))
    #expect(!channel.isActive)
  }

  @Test(arguments: [
    "\u{1}\u{2}\u{3}\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n",
  ])
  func `what is no request is answered with 400 and the connection closes`(text: String) throws {
    try? send(text)
    #expect(try output().hasPrefix("HTTP/1.1 400 "))
    channel.embeddedEventLoop.advanceTime(by: .seconds(1))
    #expect(!channel.isActive)
  }

  @Test func `a client that sends no request in time is closed`() throws {
    channel.embeddedEventLoop.advanceTime(by: .seconds(31))
    #expect(!channel.isActive)
  }

  @Test func `a draining server ends a connection after its next answer`() throws {
    channel.pipeline.fireUserInboundEventTriggered(ConnectionSet.Drain())
    #expect(channel.isActive)
    try send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n")
    channel.pipeline.fireUserInboundEventTriggered(ConnectionSet.EndIdle())
    #expect(channel.isActive, "it has a request")
    exchanges.all[0].answer(HTTPResponse(200, "one"))
    #expect(try output().contains("Connection: close\r\n"))
    #expect(!channel.isActive)
  }

  @Test func `a draining server ends an idle connection when it is asked to`() throws {
    channel.pipeline.fireUserInboundEventTriggered(ConnectionSet.EndIdle())
    #expect(!channel.isActive)
  }
}
