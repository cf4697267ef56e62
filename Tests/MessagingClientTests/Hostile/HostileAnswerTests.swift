import NIOCore
import NIOEmbedded
import NIOHTTP1
import TestSupport
import Testing

@testable import MessagingClient

extension HostileTests {
  /// Answers of a hostile server: each ends in an error that says what is wrong, in bounded time and memory.
  @Suite struct AnswerTests {
    struct Answer: Sendable, CustomTestStringConvertible {
      let name: String
      let bytes: [UInt8]
      var code = MessagingClientError.Code.invalidAnswer
      /// Sent without end behind it.
      var repeated: [UInt8] = []
      var testDescription: String { name }

      init(
        _ name: String, _ text: String, _ code: MessagingClientError.Code = .invalidAnswer,
        repeated: String = ""
      ) {
        self.name = name
        bytes = Array(text.utf8)
        self.code = code
        self.repeated = Array(repeated.utf8)
      }
    }

    private static let long = String(repeating: "a", count: 4096)
    private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    static let answers: [Answer] = [
      Answer("a reason without end", "HTTP/1.1 200 ", .outcomeUnknown, repeated: long),
      Answer("a status line without end", "", repeated: long),
      Answer("a header without end", "HTTP/1.1 200 OK\r\nX: ", repeated: long),
      Answer("the name of a header without end", "HTTP/1.1 200 OK\r\n", repeated: long),
      Answer("headers without end", "HTTP/1.1 200 OK\r\n", repeated: "X-A: b\r\n"),
      Answer("large headers", "HTTP/1.1 200 OK\r\n", repeated: "X: \(long)\r\n"),
      Answer("a body without end", "HTTP/1.1 200 OK\r\n\r\n", repeated: long),
      Answer("chunks without end", chunked, repeated: "1000\r\n\(long)\r\n"),
      Answer("small chunks without end", chunked, repeated: "1\r\na\r\n"),
      Answer("trailers without end", "\(chunked)0\r\n", repeated: "X-A: b\r\n"),
      Answer("a length of 2 GB", "HTTP/1.1 200 OK\r\nContent-Length: 2147483648\r\n\r\nab"),
      Answer(
        "a length beyond all numbers",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"),
      Answer("a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
      Answer("a length that is no number", "HTTP/1.1 200 OK\r\nContent-Length: 0x10\r\n\r\n"),
      Answer("two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
      Answer("chunks of no size", "\(chunked)zz\r\n"),
      Answer("a chunk beyond all numbers", "\(chunked)fffffffffffffffff\r\n"),
      Answer("a chunk that is longer than it says", "\(chunked)1\r\nabc\r\n"),
      Answer("another protocol", "SSH-2.0-OpenSSH_9.2\r\n"),
      Answer("HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
      Answer("a status beyond all numbers", "HTTP/1.1 99999 X\r\n\r\n"),
      Answer("a null in a header", "HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n"),
      Answer("a space in the name of a header", "HTTP/1.1 200 OK\r\nX Y: a\r\n\r\n"),
      Answer(
        "another protocol that was not asked for",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
        repeated: long),
      Answer("a head that is not complete", "HTTP/1.1 200 OK\r\n", .outcomeUnknown),
      Answer(
        "a body that is not complete", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab",
        .outcomeUnknown),
      Answer("chunks that are not complete", "\(chunked)2\r\nab\r\n", .outcomeUnknown),
      Answer("silence", "", .outcomeUnknown),
      Answer(
        "continuations without end", "", .outcomeUnknown, repeated: "HTTP/1.1 100 Continue\r\n\r\n"),
    ]

    @Test(arguments: answers)
    func `an answer that is hostile ends in an error, in bounded time and memory`(
      answer: Answer
    ) async throws {
      try await HostileServer.run { peer in
        guard peer.head() != nil else { return }
        var isSending = peer.send(answer.bytes)
        while isSending, !answer.repeated.isEmpty { isSending = peer.send(answer.repeated) }
        peer.wait()
      } _: { server in
        let transport = try Transport.to(server.url)
        let isSlow = answer.code == .outcomeUnknown
        let error = await failure {
          try await transport.get(
            timeout: .milliseconds(isSlow ? 250 : 3500), answerByteCount: 1 << 16)
        }
        #expect(error?.code == answer.code, "\(answer.name): \(error?.description ?? "no error")")
        #expect(server.connectionCount == 1)
      }
    }

    @Test func `a small chunk does not copy the body before it`() throws {
      let channel = EmbeddedChannel()
      let exchange = HTTPExchange(RequestEncoder(host: "a"), ProtocolSwitch(), isProtected: false)
      try channel.pipeline.syncOperations.addHandler(exchange)
      try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
      var request = ClientRequest(target: RequestTarget(path: "/x"))
      request.answerByteCount = 64 << 20
      let answer = channel.eventLoop.makePromise(of: ClientResponse.self)
      exchange.send(request, answer)
      func receive(_ part: HTTPClientResponsePart) throws { try channel.writeInbound(part) }
      try receive(.head(HTTPResponseHead(version: .http1_1, status: .ok)))
      try receive(.body(ByteBuffer(repeating: 0, count: 32 << 20)))
      let count = 4000
      let time = try processorTime {
        for _ in 0..<count { try receive(.body(ByteBuffer(repeating: 1, count: 1))) }
      }
      try receive(.end(nil))
      #expect(try answer.futureResult.wait().body.count == 32 << 20 + count)
      // Copies of 128 GB take several times as long.
      #expect(time < .seconds(4))
      _ = try channel.finish(acceptAlreadyClosed: true)
    }

    @Test func `many small chunks are one body`() async throws {
      let count = 100_000
      try await HostileServer.run { peer in
        guard peer.head() != nil else { return }
        peer.send(Self.chunked + String(repeating: "1\r\na\r\n", count: count) + "0\r\n\r\n")
        peer.wait()
      } _: { server in
        let response = try await Transport.to(server.url).get(timeout: .seconds(120))
        #expect(response.body.count == count)
      }
    }

    @Test func `what follows an answer is not the answer to the next request`() async throws {
      try await HostileServer.run { peer in
        while peer.head() != nil {
          peer.send(answer("200 OK", [], "first") + answer("200 OK", [], "forged"))
        }
      } _: { server in
        let transport = try Transport.to(server.url)
        for _ in 0..<3 {
          let response = try await transport.get()
          #expect(response.body == Array("first".utf8))
        }
      }
    }

    @Test func `an answer of single bytes is bounded by the time of the request`() async throws {
      try await HostileServer.run { peer in
        guard peer.head() != nil else { return }
        peer.drip(Array(Self.long.utf8), every: 20)
      } _: { server in
        let transport = try Transport.to(server.url)
        let error = await failure {
          try await transport.get(timeout: .milliseconds(200))
        }
        #expect(error?.code == .outcomeUnknown || error?.code == .invalidAnswer)
      }
      try await HostileServer.run { peer in
        guard peer.head() != nil else { return }
        peer.drip(Array((answer("200 OK") + "x").utf8.prefix(20)), every: 20)
        peer.wait()
      } _: { server in
        let transport = try Transport.to(server.url)
        let error = await failure {
          try await transport.get(timeout: .milliseconds(200))
        }
        #expect(error?.code == .outcomeUnknown)
      }
    }

    @Test(arguments: [false, true])
    func `a connection that ends at any byte of the answer leaves the outcome unknown`(
      isReset: Bool
    ) async throws {
      let whole = Array(answer("200 OK", ["X: y"], "ok").utf8)
      try await HostileServer.run { peer in
        guard peer.head() != nil else { return }
        peer.send(Array(whole.prefix(peer.number)))
        if isReset { peer.reset() }
      } _: { server in
        let transport = try Transport.to(server.url)
        for count in whole.indices {
          let error = await failure { try await transport.get() }
          // Nothing that the server can send here says who it is, and the request was sent.
          #expect(error?.code == .outcomeUnknown, "after \(count) bytes")
        }
        if !isReset { #expect(try await transport.get().body == Array("ok".utf8)) }
      }
    }

    @Test func `a server that ends each connection immediately gets no storm of connections`()
      async throws
    {
      try await HostileServer.run { peer in
        peer.reset()
      } _: { server in
        let transport = try Transport.to(server.url)
        for _ in 0..<20 {
          let error = await failure { try await transport.get() }
          #expect(error?.code == .cannotConnect || error?.code == .outcomeUnknown)
        }
        #expect(server.connectionCount <= 20)
      }
    }
  }
}
