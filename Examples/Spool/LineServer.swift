internal import Glibc
internal import MessagingQueueLifecycle
internal import NIOCore
internal import NIOPosix
internal import ServiceLifecycle
internal import Synchronization

/// A Unix socket on which clients send lines and get an answer to each, in order.
final class LineServer: Service {
  /// A client, without a writer of its own, which must not be dropped: a stop drops the clients that wait.
  private typealias Client = NIOAsyncChannel<ByteBuffer, Never>

  private static let maximumClientCount = 256
  /// The timeout for a client that does not read its answers.
  private static let sendTimeout = TimeAmount.seconds(10)
  /// How long a stop reads what clients have sent before it.
  private static let readingTime = TimeAmount.milliseconds(50)

  private let path: String
  private let maximumLineByteCount: Int
  /// Answers lines that arrived together.
  private let answers: @Sendable ([Line]) async -> [String]
  private let clientCount = Mutex(0)

  init(
    path: String, maximumLineByteCount: Int, answers: @escaping @Sendable ([Line]) async -> [String]
  ) {
    self.path = path
    self.maximumLineByteCount = maximumLineByteCount
    self.answers = answers
  }

  /// Serves clients until a graceful shutdown, and returns when every client has the answers to its lines.
  func run() async throws {
    let server = try await listen()
    let file = SocketFile(path)
    defer { file?.remove() }
    ServiceManager.notify("READY=1")
    try await withGracefulShutdownHandler {
      try await withThrowingDiscardingTaskGroup { group in
        try await server.executeThenClose { clients in
          for try await client in clients.cancelOnGracefulShutdown() {
            group.addTask { await self.admit(client) }
          }
        }
        file?.remove()
      }
    } onGracefulShutdown: {
      ServiceManager.notify("STOPPING=1")
    }
  }

  /// Binds the socket, to which its owner and its group can connect.
  ///
  /// The socket file of a killed daemon is removed. The socket of a running daemon is an error.
  private func listen() async throws -> NIOAsyncChannel<Client, Never> {
    let group = MultiThreadedEventLoopGroup.singleton
    do {
      try await ClientBootstrap(group: group).connect(unixDomainSocketPath: path).get().close()
      throw DaemonError(EX_TEMPFAIL, "another daemon listens on \(path)")
    } catch let error as IOError {
      if error.errnoCode == ECONNREFUSED { SocketFile(path)?.remove() }
    }
    do {
      // A client that has sent its last line still gets its answers. NIO removes the path that it has bound, even if
      // it is another daemon's by then: so it gets another path.
      let bound = "\(path).\(getpid())"
      let server = try await ServerBootstrap(group: group)
        .childChannelOption(.allowRemoteHalfClosure, value: true)
        .bind(unixDomainSocketPath: bound, cleanupExistingSocketFile: true) { client in
          client.eventLoop.makeCompletedFuture {
            try Client(wrappingChannelSynchronously: client)
          }
        }
      // A file that is not a socket stays: link(2) replaces none.
      guard unsafe chmod(bound, 0o660) == 0, unsafe link(bound, path) == 0 else {
        throw DaemonError.current(EX_OSERR, "cannot listen on \(path)")
      }
      return server
    } catch let error as IOError {
      throw DaemonError(EX_OSERR, "cannot listen on \(path): \(error)")
    }
  }

  /// Serves a client, unless there are too many.
  private func admit(_ client: Client) async {
    let isAdmitted = clientCount.withLock { count in
      count += 1
      return count <= Self.maximumClientCount
    }
    // A client that ends its connection early is no error of the daemon.
    try? await client.executeThenClose { pieces in
      if isAdmitted {
        try await serve(client.channel, pieces)
      } else {
        try await send("no - busy\n", to: client.channel)
      }
    }
    clientCount.withLock { $0 -= 1 }
  }

  private func serve(
    _ client: any Channel, _ pieces: NIOAsyncChannelInboundStream<ByteBuffer>
  ) async throws {
    try await withGracefulShutdownHandler {
      var buffer = LineBuffer(maximumByteCount: maximumLineByteCount)
      for try await piece in pieces {
        let lines = buffer.take(piece.readableBytesView)
        if lines.isEmpty { continue }
        try await send(answers(lines).map { $0 + "\n" }.joined(), to: client)
      }
    } onGracefulShutdown: {
      client.eventLoop.scheduleTask(in: Self.readingTime) {
        client.close(mode: .input, promise: nil)
      }
    }
  }

  /// Returns when the kernel has the whole text.
  private func send(_ text: String, to client: any Channel) async throws {
    let timeout = client.eventLoop.scheduleTask(in: Self.sendTimeout) { client.close(promise: nil) }
    defer { timeout.cancel() }
    try await client.writeAndFlush(ByteBuffer(string: text))
  }
}
