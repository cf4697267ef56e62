import ApplicationStore
import NIOCore
import NIOPosix

@testable import MessagingServer

/// A client that sends what it is told, byte for byte.
struct STOMPPeer: ~Copyable {
  private var iterator: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
  private let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
  private var decoder = STOMPDecoder()
  private var rest: ArraySlice<UInt8> = []

  private init(
    _ inbound: NIOAsyncChannelInboundStream<ByteBuffer>,
    _ outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
  ) {
    iterator = inbound.makeAsyncIterator()
    self.outbound = outbound
    decoder.version = .v12
  }

  /// Runs `body` with a new connection.
  static func run(
    _ server: ServerFixture, _ body: (inout STOMPPeer) async throws -> Void
  ) async throws {
    let parts = server.stompOrigin.split(separator: ":")
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connect(host: String(parts[0]), port: Int(parts[1]) ?? 0) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
        }
      }
    try await channel.executeThenClose { inbound, outbound in
      var peer = STOMPPeer(inbound, outbound)
      try await body(&peer)
    }
  }

  /// Runs `body` with a connection whose client signs for the application.
  static func connect(
    _ server: ServerFixture, _ keys: ServerFixture.Keys,
    _ body: (inout STOMPPeer) async throws -> Void
  ) async throws {
    try await run(server) { peer in
      try await peer.send(
        "CONNECT\naccept-version:1.2\nhost:\(keys.record.name)\nlogin:\(keys.publish)\npasscode:\(keys.secretKey)\n\n"
      )
      _ = try await peer.next()
      try await body(&peer)
    }
  }

  func write(_ bytes: [UInt8]) async throws {
    try await outbound.write(ByteBuffer(bytes: bytes))
  }

  /// Sends a frame, to which it adds the end.
  func send(_ text: String) async throws { try await write(Array("\(text)\0".utf8)) }

  /// The next frame; nil when the server has closed.
  mutating func next(
    isolation: isolated (any Actor)? = #isolation
  ) async throws -> STOMPFrame? {
    while true {
      while !rest.isEmpty {
        if let frame = try decoder.next(&rest) { return frame }
      }
      guard let bytes = try await iterator.next(isolation: isolation) else { return nil }
      rest = Array(bytes.readableBytesView)[...]
    }
  }

  /// The message of the error with which the server closes.
  mutating func ending(
    isolation: isolated (any Actor)? = #isolation
  ) async throws -> String? {
    var message: String?
    while let frame = try await next() {
      if frame.command == "ERROR" { message = frame["message"] }
    }
    return message
  }
}
