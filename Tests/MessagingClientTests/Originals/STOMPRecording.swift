import TestSupport
import Testing

@testable import MessagingClient

/// What a STOMP server says: `Fixtures/originals/stomp`.
///
/// `> COMMAND` is a frame of the client for which it waits. What follows is a frame of the server, whose end is written
/// `^@`. In it, `{receipt}` is the receipt that the client's last frame has asked for, and `{subscription}` the id of
/// its last SUBSCRIBE.
struct STOMPRecording: Sendable {
  private let parts: [Substring]

  init(_ name: String) throws {
    let text = try Repository.text("Fixtures/originals/stomp/\(name).txt")
    parts = text.split(separator: "^@\n")[...].map { $0 }
  }

  /// Plays recordings on each connection, one behind the other.
  static func play<R>(
    _ names: [String], _ body: (_ address: String, HostileServer) async throws -> R
  ) async throws -> R {
    let recordings = try names.map { try STOMPRecording($0) }
    return try await HostileServer.run { peer in
      var stomp = STOMPPeer(peer)
      for recording in recordings { recording.play(peer, &stomp) }
      // DISCONNECT needs its receipt.
      while let frame = stomp.frame() {
        if frame.command == "DISCONNECT" {
          peer.send("RECEIPT\nreceipt-id:\(frame["receipt"] ?? "")\n\n\0\n")
        }
      }
    } _: {
      try await body("stomp://127.0.0.1:\($0.port)", $0)
    }
  }

  func play(_ peer: HostileServer.Peer, _ stomp: inout STOMPPeer) {
    for part in parts {
      var rest = part
      while rest.hasPrefix("> ") {
        let command = rest.dropFirst(2).prefix { $0 != "\n" }
        while let frame = stomp.frame(), frame.command != command { continue }
        rest = rest.dropFirst(2 + command.count + 1)
      }
      guard !rest.isEmpty else { continue }
      // RabbitMQ and ActiveMQ end each frame with a line feed behind the NUL.
      peer.send(
        rest.replacing("{receipt}", with: stomp.receipt)
          .replacing("{subscription}", with: stomp.subscription) + "\0\n")
    }
  }
}

/// Reads the frames of a client.
struct STOMPPeer {
  private let peer: HostileServer.Peer
  private var decoder = STOMPDecoder()
  private(set) var receipt = ""
  private(set) var subscription = ""

  init(_ peer: HostileServer.Peer) { self.peer = peer }

  /// The next frame; nil at the end of the connection.
  mutating func frame() -> STOMPFrame? {
    while true {
      // Byte by byte, so that nothing waits that belongs to the next frame.
      let bytes = peer.read(1)
      var rest = bytes[...]
      guard !bytes.isEmpty else { return nil }
      guard let frame = try? decoder.next(&rest) else { continue }
      receipt = frame["receipt"] ?? receipt
      if frame.command == "SUBSCRIBE" { subscription = frame["id"] ?? subscription }
      return frame
    }
  }
}
