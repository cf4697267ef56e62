import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import MessagingServer

@Suite struct ListenerTests {
  private let group = MultiThreadedEventLoopGroup.singleton
  private let connections = ConnectionSet(maximumCount: 10)

  private func listen(at address: String) async throws -> Listener {
    try await Listener.start(
      at: try #require(ListenAddress(address)), on: group,
      Listener.Configuration(
        connections: connections,
        spoken: .http(HTTPLimits(), ServerOperations()) { $0.answer(HTTPResponse(200, "1")) }))
  }

  @Test func `a connection waits until its listener accepts`() async throws {
    let listener = try await listen(at: "127.0.0.1:0")
    let port = try #require(listener.url.split(separator: ":").last.flatMap { Int($0) })
    let client = try await ClientBootstrap(group: group).connect(host: "127.0.0.1", port: port)
      .get()
    for eventLoop in group.makeIterator() { try await eventLoop.submit {}.get() }
    #expect(connections.count == 0)
    try await listener.accept()
    try await eventually { connections.count == 1 }
    try await client.close()
    await listener.close()
  }

  @Test func `a Unix socket is not taken from a program that listens on it`() async throws {
    let folder = ScratchFolder()
    let address = "unix:" + folder.path("socket")
    let first = try await listen(at: address)
    await #expect(throws: ServerError.self) { try await listen(at: address) }
    await first.close()
    await (try listen(at: address)).close()
  }
}
