internal import NIOCore

/// How much a connection keeps for a client that does not read, and for how long.
struct OutputLimits: Sendable {
  /// The most bytes that wait before the client counts as slow.
  ///
  /// Default: 1 MiB.
  var waitingByteCount = 1 << 20
  /// How long bytes can wait while the client reads nothing.
  ///
  /// Default: 30 seconds.
  var stallTime: Duration = .seconds(30)
}

/// The only way in which a connection writes, data and control frames alike.
///
/// The system gets one chunk at a time, and takes it as fast as the client reads. Short writes behind it are joined, so
/// that what waits takes little more memory than its bytes. Only for use on the event loop of its channel.
final class ConnectionWriter {
  /// The largest chunk: a client that has read one has made progress.
  private static let chunkByteCount = 64 << 10
  /// Writes are joined up to this size.
  private static let joinedByteCount = 16 << 10

  private let context: ChannelHandlerContext
  private let limits: OutputLimits
  private let memory: MemoryAccount?
  /// Called when the system has taken what had to wait.
  private let didDrain: () -> Void
  /// Called when the client has read nothing for the limit's time.
  private let didStall: () -> Void
  private var waiting: CircularBuffer<ByteBuffer> = []
  /// What the system has not taken.
  private(set) var waitingByteCount = 0
  private var sentByteCount = 0
  private var callbacks: CircularBuffer<(position: Int, body: () -> Void)> = []
  /// Whether the system has a chunk that it has not taken whole.
  private var hasChunk = false
  private var isWriting = false
  private var progress = NIODeadline.distantPast
  private var timer: Scheduled<Void>?

  init(
    _ context: ChannelHandlerContext, _ limits: OutputLimits, _ memory: MemoryAccount?,
    didDrain: @escaping () -> Void, didStall: @escaping () -> Void
  ) {
    self.context = context
    self.limits = limits
    self.memory = memory
    self.didDrain = didDrain
    self.didStall = didStall
  }

  /// Whether the system has taken everything.
  var isIdle: Bool { waitingByteCount == 0 }

  /// Whether more waits than the limit.
  var isFull: Bool { waitingByteCount > limits.waitingByteCount }

  /// Writes behind everything before.
  ///
  /// - Parameter whenSent: called when the system has taken the bytes, unless the connection is lost.
  func write(_ bytes: ByteBuffer, whenSent: (() -> Void)? = nil) {
    waitingByteCount += bytes.readableBytes
    if let last = waiting.indices.last,
      waiting[last].readableBytes + bytes.readableBytes <= Self.joinedByteCount
    {
      waiting[last].writeImmutableBuffer(bytes)
    } else {
      waiting.append(bytes)
    }
    if let whenSent { callbacks.append((sentByteCount + waitingByteCount, whenSent)) }
    writeNext()
  }

  /// Drops what waits: the connection is gone.
  func end() {
    waiting = []
    callbacks = []
    waitingByteCount = 0
    memory?.hold(0, .output)
    timer?.cancel()
    timer = nil
  }

  private func writeNext() {
    // A chunk that the system takes immediately is followed by the next within this loop.
    guard !isWriting else { return }
    isWriting = true
    while !hasChunk, var first = waiting.popFirst() {
      let length = min(Self.chunkByteCount, first.readableBytes)
      guard let chunk = first.readSlice(length: length) else { break }
      if first.readableBytes > 0 { waiting.prepend(first) }
      hasChunk = true
      let promise = context.eventLoop.makePromise(of: Void.self)
      promise.futureResult.assumeIsolated().whenSuccess { [weak self] in self?.didWrite(length) }
      context.writeAndFlush(NIOAny(chunk), promise: promise)
    }
    isWriting = false
    memory?.hold(waitingByteCount, .output)
    if hasChunk { watch() }
  }

  private func didWrite(_ byteCount: Int) {
    hasChunk = false
    waitingByteCount = max(0, waitingByteCount - byteCount)
    sentByteCount += byteCount
    while let first = callbacks.first, first.position <= sentByteCount {
      callbacks.removeFirst()
      first.body()
    }
    if isWriting { return }
    progress = context.eventLoop.now
    writeNext()
    guard isIdle else { return }
    timer?.cancel()
    timer = nil
    didDrain()
  }

  // MARK: - Time

  /// Begins to look at the clock, unless it does.
  private func watch() {
    guard timer == nil else { return }
    progress = context.eventLoop.now
    look(at: progress + TimeAmount(limits.stallTime))
  }

  private func look(at deadline: NIODeadline) {
    let me = NIOLoopBound(self, eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleTask(deadline: deadline) { me.value.timePassed() }
  }

  private func timePassed() {
    timer = nil
    guard !isIdle else { return }
    let deadline = progress + TimeAmount(limits.stallTime)
    if deadline <= context.eventLoop.now { didStall() } else { look(at: deadline) }
  }
}
