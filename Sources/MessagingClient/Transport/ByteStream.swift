internal import NIOCore
internal import NIOTLS

/// What comes over a stream, or its end.
enum ByteStreamEvent: Sendable, Equatable {
  case bytes([UInt8])
  /// - Parameter isTrusted: false if the server did not prove who it is.
  case closed(isTrusted: Bool)
}

/// An open connection for bytes, as tasks use it.
struct ByteStream: Sendable {
  private let channel: any Channel
  private let inbox: Inbox<ByteStreamEvent>

  init(_ channel: any Channel, _ inbox: Inbox<ByteStreamEvent>) {
    self.channel = channel
    self.inbox = inbox
    inbox.whenTaken { _ = channel.setOption(.autoRead, value: true) }
  }

  /// The next bytes, or the end; nil if the task is cancelled.
  ///
  /// It is for one task at a time.
  func next() async -> ByteStreamEvent? { await inbox.next() }

  /// Sends bytes behind all that were sent before; they are wiped when they are written.
  func enqueue(byteCount: Int, _ write: @escaping @Sendable (inout ByteBuffer) -> Void) {
    channel.eventLoop.execute { [channel] in
      var bytes = channel.allocator.buffer(capacity: byteCount)
      write(&bytes)
      channel.writeAndFlush(bytes).whenComplete { [bytes] _ in bytes.wipe() }
    }
  }

  func drop() { channel.close(promise: nil) }
}

/// Hands the bytes of a connection to its reader.
final class ByteStreamHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let inbox: Inbox<ByteStreamEvent>
  /// Whether TLS, if there is one, has ended its handshake.
  private var isOpen = false
  private var isTrusted = true

  init(_ inbox: Inbox<ByteStreamEvent>) { self.inbox = inbox }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    isOpen = true
    let bytes = Array(unwrapInboundIn(data).readableBytesView)
    if inbox.put(.bytes(bytes), byteCount: bytes.count) { return }
    // The reader is behind: TCP slows the server down.
    _ = context.channel.setOption(.autoRead, value: false)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if !isOpen, TLSFailure.isDistrust(error) { isTrusted = false }
    context.close(promise: nil)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case TLSUserEvent.handshakeCompleted = event { isOpen = true }
    context.fireUserInboundEventTriggered(event)
  }

  func channelInactive(context: ChannelHandlerContext) {
    inbox.end(with: .closed(isTrusted: isTrusted))
    context.fireChannelInactive()
  }
}
