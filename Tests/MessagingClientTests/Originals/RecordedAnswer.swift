import Foundation
import Synchronization
import TestSupport
import Testing

/// An answer of `Fixtures/originals/pubnub`, as it goes over a connection.
struct RecordedAnswer: Sendable {
  private let head: String
  private let body: [UInt8]

  /// The parts of a stored answer are a head with lines, an empty line, the body, and a line feed of the file.
  init(_ name: String) throws {
    let text = try Repository.text("Fixtures/originals/pubnub/\(name).http")
    let end = try #require(text.range(of: "\n\n"))
    head = text[..<end.lowerBound].replacing("\n", with: "\r\n") + "\r\n\r\n"
    body = Array(text[end.upperBound...].utf8.dropLast())
    if !isChunked { try #require(head.contains("\r\nContent-Length: \(body.count)\r\n")) }
  }

  /// Whether the connection ends behind it.
  var isLast: Bool { head.contains("\r\nConnection: close\r\n") }

  private var isChunked: Bool { head.contains("\r\nTransfer-Encoding: chunked\r\n") }

  /// The parts, between which a connection can pause; chunks are short, so that they begin within characters and numbers.
  var parts: [[UInt8]] {
    guard isChunked else { return [Array(head.utf8), body] }
    let chunks = stride(from: 0, to: body.count, by: 61).map { start -> [UInt8] in
      let chunk = body[start..<min(start + 61, body.count)]
      return Array("\(String(chunk.count, radix: 16))\r\n".utf8) + chunk + Array("\r\n".utf8)
    }
    return [Array(head.utf8)] + chunks + [Array("0\r\n\r\n".utf8)]
  }
}

extension HostileServer.Peer {
  /// Reads a request with its body; nil if the client has ended before.
  func request() -> OriginalServer.Request? {
    guard let head = head() else { return nil }
    let lines = head.split(separator: "\r\n")
    let length = lines.lazy.compactMap { $0.lowercased().wholeMatch(of: /content-length: (\d+)/) }
      .first.flatMap { Int($0.output.1) }
    var body: [UInt8] = []
    while body.count < length ?? 0 {
      let bytes = read((length ?? 0) - body.count)
      if bytes.isEmpty { return nil }
      body += bytes
    }
    let target = lines.first?.split(separator: " ").prefix(2).joined(separator: " ") ?? ""
    return OriginalServer.Request(
      line: String(target.prefix { $0 != "?" }), query: String(target.drop { $0 != "?" }),
      body: String(decoding: body, as: UTF8.self))
  }
}

/// Answers requests as the original of a protocol does, and keeps them.
final class OriginalServer: Sendable {
  struct Request: Sendable {
    /// The method and the path.
    let line: String
    let query: String
    let body: String
  }

  private let answers: Mutex<[RecordedAnswer]>
  private let kept = Mutex<[Request]>([])

  private init(_ answers: [RecordedAnswer]) { self.answers = Mutex(answers.reversed()) }

  /// The requests, in their order.
  var requests: [Request] { kept.withLock { $0 } }
  var lines: [String] { requests.map(\.line) }

  /// Answers the requests of all connections with recordings, in their order; a request behind them has no answer.
  static func replay<R>(
    _ names: [String], _ body: (_ url: String, OriginalServer) async throws -> R
  ) async throws -> R {
    let original = OriginalServer(try names.map { try RecordedAnswer($0) })
    return try await HostileServer.run {
      original.serve($0)
    } _: {
      try await body($0.url, original)
    }
  }

  private func serve(_ peer: HostileServer.Peer) {
    while let request = peer.request() {
      kept.withLock { $0.append(request) }
      guard let answer = answers.withLock({ $0.popLast() }) else { break }
      for part in answer.parts { peer.send(part) }
      if answer.isLast { return }
    }
    peer.wait()
  }
}
