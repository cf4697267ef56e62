import StrictJSON
import TestSupport
import Testing

@testable import MessagingClient

/// A connection of Pusher's protocol as its original leads it: `Fixtures/originals/pusher`.
///
/// `< TEXT` is what the server says, `> NAME` is an event of the client for which it waits, and `close CODE REASON` is its
/// close frame. Without one, the connection stays open.
struct PusherTranscript: Sendable {
  private let lines: [Substring]

  init(_ name: String) throws {
    lines = try Repository.text("Fixtures/originals/pusher/\(name).txt").split(separator: "\n")
  }

  /// Plays a transcript on each connection; the last one is played on all that follow.
  static func play<R>(
    _ names: [String], _ body: (HostileServer) async throws -> R
  ) async throws -> R {
    let transcripts = try names.map { try PusherTranscript($0) }
    return try await HostileServer.run { peer in
      guard let head = peer.head(), let handshake = try? HostileWebSocket.handshake(head) else {
        return
      }
      peer.send(handshake)
      let transcript = transcripts[min(peer.number, transcripts.count - 1)]
      transcript.play(peer)
      if !transcript.isClosed { peer.wait() }
    } _: {
      try await body($0)
    }
  }

  private var isClosed: Bool { lines.last?.hasPrefix("close ") ?? false }

  private func play(_ peer: HostileServer.Peer) {
    for line in lines {
      let (mark, text) = (line.prefix { $0 != " " }, line.drop { $0 != " " }.dropFirst())
      switch mark {
      case "<": peer.send(HostileWebSocket.text(String(text)))
      case ">":
        while let event = peer.event(), event != text { continue }
      default:
        let code = UInt16(text.prefix { $0 != " " }) ?? 0
        peer.send(HostileWebSocket.close(code, String(text.drop { $0 != " " }.dropFirst())))
        // The client's close frame, behind which the server ends the connection.
        _ = peer.read(64)
        return
      }
    }
  }
}

extension HostileServer.Peer {
  /// The name of the client's next event; nil at the end of the connection.
  fileprivate func event() -> String? {
    while true {
      let head = exactly(2)
      guard head.count == 2 else { return nil }
      var length = Int(head[1] & 0x7F)
      if length == 126 { length = exactly(2).reduce(0) { $0 << 8 | Int($1) } }
      let mask = exactly(4)
      let payload = exactly(length)
      guard mask.count == 4, payload.count == length else { return nil }
      let text = payload.indices.map { payload[$0] ^ mask[$0 % 4] }
      // The payloads of pings and of close frames are no events.
      if head[0] & 0x0F == 1, let value = try? JSONReader.value(text) {
        return value.member("event")?.string
      }
    }
  }

  private func exactly(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count {
      let more = read(count - bytes.count)
      if more.isEmpty { break }
      bytes += more
    }
    return bytes
  }
}
