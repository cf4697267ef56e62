@_spi(Testing) import MessagingClient
import NIOCore
import NIOEmbedded

/// What a client makes of the bytes of a hostile server: answers, frames of WebSockets, messages of Pusher and PubNub.
///
/// The first byte of the input selects one of these. The pieces in which bytes come must not matter.
final class ClientFixture {
  private static let byteCount = 300

  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard let mode = input.first else { return }
    let rest = Array(input.dropFirst())
    switch mode & 3 {
    case 0: compare(rest) { try Self.frames($0) }
    case 1: compare(rest) { try Self.answer($0, opensWebSocket: mode & 4 != 0) }
    case 2:
      require(
        ClientProbe.pusherFrame(rest) == ClientProbe.pusherFrame([0x20] + rest + [0x0A]),
        "spaces change a message of Pusher")
    default:
      require(
        ClientProbe.pubNubEvents(rest) == ClientProbe.pubNubEvents([0x20] + rest + [0x0A]),
        "spaces change the events of PubNub")
    }
  }

  private func compare(_ bytes: [UInt8], _ read: ([ArraySlice<UInt8>]) throws -> String) {
    var pieces = Pieces(bytes)
    do {
      let whole = try read([bytes[...]])
      let cut = try read(pieces.cut(bytes, largestBitCount: 8))
      require(whole == cut, "the whole is \(whole), its pieces are \(cut)")
      guard bytes.count <= 512 else { return }
      let single = try read(bytes.indices.map { bytes[$0...$0] })
      require(whole == single, "the whole is \(whole), its bytes are \(single)")
    } catch {
      require(false, "the channel fails: \(error)")
    }
  }

  private static func channel() throws -> EmbeddedChannel {
    let channel = EmbeddedChannel()
    try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    return channel
  }

  private static func feed(_ pieces: [ArraySlice<UInt8>], _ channel: EmbeddedChannel) {
    for piece in pieces where channel.isActive {
      // It throws what the decoder reports.
      _ = try? channel.writeInbound(ByteBuffer(bytes: piece))
    }
  }

  private static func frames(_ pieces: [ArraySlice<UInt8>]) throws -> String {
    let channel = try channel()
    let socket = try ClientProbe.Socket(channel, messageByteCount: byteCount)
    let recorder = SentBytes()
    try channel.pipeline.syncOperations.addHandler(recorder, position: .first)
    feed(pieces, channel)
    let sent = recorder.bytes
    _ = try? channel.finish(acceptAlreadyClosed: true)
    let events = socket.events()
    guard case .closed? = events.last else {
      require(false, "a WebSocket does not end")
      return ""
    }
    for case .message(let bytes) in events {
      require(bytes.count <= byteCount, "a message is too long")
    }
    return "\(events) \(unmasked(sent))"
  }

  /// What the client sent, without the random keys of its masks.
  private static func unmasked(_ sent: [UInt8]) -> [[UInt8]] {
    var (frames, rest) = ([[UInt8]](), sent[...])
    while rest.count >= 6 {
      let head = Array(rest.prefix(6))
      let count = Int(head[1] & 0x7F)
      require(head[1] & 0x80 != 0 && count < 126, "the client sends a frame that is no answer")
      let payload = rest.dropFirst(6).prefix(count).enumerated().map { $1 ^ head[2 + $0 % 4] }
      frames.append([head[0]] + payload)
      rest = rest.dropFirst(6 + count)
    }
    require(rest.isEmpty, "the client sends a part of a frame")
    return frames
  }

  private static func answer(_ pieces: [ArraySlice<UInt8>], opensWebSocket: Bool) throws -> String {
    let channel = try channel()
    let exchange = try ClientProbe.Exchange(
      channel, answerByteCount: byteCount, opensWebSocket: opensWebSocket)
    feed(pieces, channel)
    _ = try? channel.finish(acceptAlreadyClosed: true)
    guard let result = exchange.result else {
      require(false, "a request without an end")
      return ""
    }
    return result
  }
}

/// Copies what is sent, which is wiped when it is written.
private final class SentBytes: ChannelOutboundHandler {
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private(set) var bytes: [UInt8] = []

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    bytes += unwrapOutboundIn(data).readableBytesView
    context.write(data, promise: promise)
  }
}
