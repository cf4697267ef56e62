import NIOCore

/// Stands for a client that reads nothing until it is told to: as the first handler, it keeps what the connection writes.
final class SlowReader: ChannelOutboundHandler {
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private var held: [(bytes: NIOAny, promise: EventLoopPromise<Void>?)] = []
  private var context: ChannelHandlerContext?

  /// Slows a channel down.
  static func add(to channel: any Channel) throws -> SlowReader {
    let reader = SlowReader()
    try channel.pipeline.syncOperations.addHandler(reader, position: .first)
    return reader
  }

  /// How many writes the client has not read.
  var heldCount: Int { held.count }

  /// Reads what was written so far, and again nothing of what comes then.
  func read() {
    let written = held
    held = []
    for write in written { context?.write(write.bytes, promise: write.promise) }
    context?.flush()
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }
  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    held.append((data, promise))
  }
}
