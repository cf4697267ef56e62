internal import NIOCore

/// Gives the decoder no more than one request at a time.
///
/// What a client sends behind a request stays as bytes until its answer is written: a parsed request takes many times
/// the memory of a short one.
final class HTTPInput: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  /// What the connection can take next; it ends at most one request.
  enum Piece {
    /// Bytes up to the end of an empty line: a head, or what is left of chunks.
    case lines
    /// Bytes of a body with this length.
    case body(Int)
    /// Everything, to be dropped.
    case dropped
  }

  private var context: ChannelHandlerContext?
  private let memory: MemoryAccount?
  private let next: () -> Piece?
  private var waiting = ByteBuffer()
  /// Whether the line whose end has not come is empty so far.
  private var isLineEmpty = true
  private var isPassing = false
  /// What the decoder keeps of a head that has not ended.
  private var headByteCount = 0

  /// - Parameter next: what can be taken now; nil for nothing.
  init(_ memory: MemoryAccount?, next: @escaping () -> Piece?) {
    self.memory = memory
    self.next = next
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }
  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func channelInactive(context: ChannelHandlerContext) {
    waiting = ByteBuffer()
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    if waiting.readableBytes == 0 { waiting = bytes } else { waiting.writeBuffer(&bytes) }
    pass()
  }

  /// Passes on what can be taken.
  func pass() {
    // A request that needs no wait is answered within this loop, which continues then: it must not nest as deeply
    // as a client sends requests.
    guard !isPassing, let context else { return }
    isPassing = true
    while waiting.readableBytes > 0, let piece = next() {
      let byteCount = byteCount(of: piece)
      guard let bytes = waiting.readSlice(length: byteCount) else { break }
      if case .dropped = piece { continue }
      context.fireChannelRead(wrapInboundOut(bytes))
    }
    isPassing = false
    if waiting.readableBytes == 0 { waiting = ByteBuffer() }
    memory?.hold(waiting.storageCapacity + headByteCount, .input)
  }

  /// Passes on what waits, whatever can be taken: it belongs to another protocol.
  func passAll() {
    if waiting.readableBytes > 0 { context?.fireChannelRead(wrapInboundOut(waiting)) }
    waiting = ByteBuffer()
    memory?.hold(0, .input)
  }

  private func byteCount(of piece: Piece) -> Int {
    switch piece {
    case .lines: return lineByteCount()
    case .body(let byteCount):
      isLineEmpty = true
      return min(max(byteCount, 1), waiting.readableBytes)
    case .dropped: return waiting.readableBytes
    }
  }

  /// The number of bytes up to the end of the next empty line, or of all.
  private func lineByteCount() -> Int {
    let bytes = waiting.readableBytesView
    var start = bytes.startIndex
    while let end = bytes[start...].firstIndex(of: .lineFeed) {
      let endsEmptyLine = isLineEmpty && bytes[start..<end].allSatisfy { $0 == .carriageReturn }
      isLineEmpty = true
      start = end + 1
      if endsEmptyLine {
        headByteCount = 0
        return start - bytes.startIndex
      }
    }
    headByteCount += bytes.count
    isLineEmpty = isLineEmpty && bytes[start...].allSatisfy { $0 == .carriageReturn }
    return bytes.count
  }
}
