import NIOCore
import NIOEmbedded
import TestSupport
import Testing

@testable import MessagingServer

/// Notes that its connection is to end for its memory.
private final class EndNote: ChannelInboundHandler {
  typealias InboundIn = Never
  private(set) var hasEnded = false

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is MemoryLedger.End { hasEnded = true }
  }
}

@Suite struct MemoryLedgerTests {
  private let ledger = MemoryLedger(limitByteCount: 800 << 10)

  private func connect() throws -> (EmbeddedChannel, MemoryAccount, EndNote) {
    let channel = EmbeddedChannel()
    let note = EndNote()
    try channel.pipeline.syncOperations.addHandler(note)
    try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    return (channel, ledger.open(channel), note)
  }

  @Test func `MemoryLedger sums what connections hold, and gets it back when they close`() throws {
    let (channel, account, _) = try connect()
    let (_, other, _) = try connect()
    account.hold(4095, .input)
    #expect(ledger.byteCount == 0)
    account.hold(1, .output)
    #expect(ledger.byteCount == 4096)
    other.hold(40 << 10, .session)
    account.hold(20 << 10, .input)
    #expect(ledger.byteCount == 60 << 10)
    account.hold(0, .input)
    #expect(ledger.byteCount == 40 << 10)
    account.hold(30 << 10, .fragments)
    try channel.close().wait()
    channel.embeddedEventLoop.run()
    #expect(ledger.byteCount == 40 << 10)
    account.hold(50 << 10, .fragments)
    #expect(ledger.byteCount == 40 << 10)
  }

  @Test func `MemoryLedger ends a connection that holds more than its share`() throws {
    let (channel, account, note) = try connect()
    account.hold(ledger.shareByteCount, .request)
    channel.embeddedEventLoop.run()
    #expect(!note.hasEnded)
    account.hold(4096, .output)
    #expect(!note.hasEnded, "not in the middle of what has made it grow")
    channel.embeddedEventLoop.run()
    #expect(note.hasEnded)
    #expect(ledger.byteCount == 0)
  }

  @Test func `MemoryLedger ends the largest connection when all hold more than the limit`() throws {
    let small = try (0..<8).map { _ in try connect() }
    let large = try connect()
    large.1.hold(96 << 10, .session)
    for (_, account, _) in small { account.hold(88 << 10, .session) }
    #expect(ledger.byteCount == 800 << 10)
    #expect(ledger.isNearlyFull)
    small[0].1.hold(92 << 10, .session)
    for (channel, _, note) in small + [large] {
      channel.embeddedEventLoop.run()
      #expect(note.hasEnded == (note === large.2))
    }
    #expect(ledger.byteCount == 708 << 10)
  }

  @Test func `ConnectionSet bounds the connections from an address, but not from this machine`()
    throws
  {
    let connections = ConnectionSet(maximumCount: 100, maximumCountPerAddress: 2)
    let channels = (0..<20).map { _ in EmbeddedChannel() }
    func add(_ number: Int, _ address: String) throws -> Bool {
      connections.add(
        channels[number], from: try SocketAddress(ipAddress: address, port: 1000 + number))
    }
    for number in 0..<2 { #expect(try add(number, "192.0.2.1")) }
    #expect(try !add(2, "192.0.2.1"))
    #expect(try add(3, "192.0.2.2"))
    for number in 4..<6 { #expect(try add(number, "2001:db8::\(number)")) }
    #expect(try !add(6, "2001:db8::3"), "one network")
    #expect(try add(7, "2001:db8:0:1::1"))
    for number in 8..<12 { #expect(try add(number, "127.0.0.1")) }
    try channels[0].close().wait()
    channels[0].embeddedEventLoop.run()
    #expect(try add(12, "192.0.2.1"))
    #expect(try !add(13, "192.0.2.1"))
  }

  @Test func `a STOMP transaction that holds too much memory ends, and others are served`()
    async throws
  {
    try await ServerFixture.run({ configuration in
      configuration.stompListening = [.init(ListenAddress("127.0.0.1:0")!)]
      configuration.memoryByteCount = 1 << 20
    }) { server in
      try await STOMPPeer.connect(server, server.open) { peer in
        try await peer.send("BEGIN\ntransaction:t\n\n")
        let body = String(repeating: "x", count: 100_000)
        for _ in 0..<2 {
          try await peer.send("SEND\ndestination:/topic/c\ntransaction:t\n\n\(body)")
        }
        #expect(
          try await peer.ending() == "the connection holds too much memory: connect again")
      }
      try await STOMPPeer.connect(server, server.open) { peer in
        try await peer.send("SEND\ndestination:/topic/c\nreceipt:r\n\nx")
        #expect(try await peer.next()?["receipt-id"] == "r")
      }
      #expect(try await server.bodies(of: "shop/c") == ["x"])
      try await eventually { server.server.connections.memory.byteCount == 0 }
    }
  }
}
