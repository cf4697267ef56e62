import Foundation
import Logging
import NIOCore
import NIOEmbedded
import NIOPosix
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import MessagingQueueLifecycle
@testable import MessagingServer

/// Reports to a service manager, as they came.
private final class Reports: Sendable {
  private let list = Mutex<[String]>([])

  func add(_ report: String) { list.withLock { $0.append(report) } }
  var all: [String] { list.withLock { $0 } }
}

@Suite struct OperationsServiceTests {
  private let folder = ScratchFolder()
  private let reports = Reports()
  private let operations: ServerOperations
  private let service: OperationsService
  private let memory = MemoryLedger(limitByteCount: 800 << 10)

  init() {
    operations = ServerOperations(
      registry: PrometheusRegistry(),
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
      notify: { [reports] in reports.add($0) })
    service = OperationsService(
      operations: operations, connections: ConnectionSet(maximumCount: 1, memory: memory),
      gate: HomeGate())
  }

  /// Answers a request as the listener of the operators, or of the clients.
  private func answer(
    _ target: String, method: String = "GET", isForClients: Bool = false
  ) -> HTTPResponse? {
    let answer = Mutex<HTTPResponse?>(nil)
    let exchange = HTTPExchange(
      HTTPRequest(method: method, target: Array(target.utf8)), on: EmbeddedEventLoop()
    ) { reply in if case .response(let response) = reply { answer.withLock { $0 = response } } }
    if isForClients { _ = service.answersHealth(exchange) } else { service.answer(exchange) }
    return answer.withLock(\.self)
  }

  private func text(_ response: HTTPResponse?) -> String {
    String(decoding: response?.body ?? [], as: UTF8.self)
  }

  @Test func `/health/live answers while the vault is locked, on the listeners of the clients too`()
  {
    for isForClients in [true, false] {
      let response = answer("/health/live?x", isForClients: isForClients)
      #expect(response?.status == 200)
      #expect(text(response) == #"{"status":"live"}"#)
    }
  }

  @Test func `/health/ready says why the server is not ready`() async {
    #expect(text(answer("/health/ready")) == #"{"status":"sealed"}"#)
    operations.didUnseal()
    #expect(text(answer("/health/ready")) == #"{"status":"disk"}"#)
    #expect(answer("/health/ready")?.status == 503)
    await operations.disk.look(in: folder.path)
    #expect(answer("/health/ready")?.status == 200)
    #expect(text(answer("/health/ready")) == #"{"status":"ready"}"#)
    let channels = (0..<8).map { _ in EmbeddedChannel() }
    for channel in channels { memory.open(channel).hold(memory.shareByteCount, .output) }
    #expect(text(answer("/health/ready")) == #"{"status":"memory"}"#)
    #expect(text(answer("/metrics")).contains("\ndatavault_server_memory_bytes 819200.0\n"))
    for channel in channels {
      channel.close(promise: nil)
      channel.embeddedEventLoop.run()
    }
    #expect(text(answer("/health/ready")) == #"{"status":"ready"}"#)
    operations.didSeal()
    #expect(text(answer("/health/ready")) == #"{"status":"sealed"}"#)
    operations.willStop()
    #expect(text(answer("/health/ready")) == #"{"status":"stopping"}"#)
  }

  @Test func `DiskProbe reports a missing directory and a disk that does not answer`()
    async throws
  {
    let probe = DiskProbe()
    await probe.look(in: folder.path)
    #expect(probe.isWritable())
    #expect(!probe.isWritable(at: .now + .seconds(31)))
    await probe.look(in: folder("missing"))
    #expect(!probe.isWritable())
    #expect(try folder.names().isEmpty)
  }

  @Test(.enabled(if: SmallDisk.isAvailable, "mounting a small tmpfs needs root"))
  func `DiskProbe reports a full disk until there is space`() async throws {
    let disk = try SmallDisk(at: folder.path("disk"), byteCount: 1 << 20)
    let probe = DiskProbe()
    await probe.look(in: FilePath(disk.path))
    #expect(probe.isWritable())
    try disk.fill()
    await probe.look(in: FilePath(disk.path))
    #expect(!probe.isWritable())
    try disk.empty()
    await probe.look(in: FilePath(disk.path))
    #expect(probe.isWritable())
    #expect(disk.names == [])
  }

  @Test func `metrics are served to operators, and not to clients`() {
    operations.didUnseal()
    let response = answer("/metrics")
    #expect(response?.status == 200)
    #expect(response?.contentType == "text/plain; version=0.0.4; charset=utf-8")
    #expect(text(response).contains("\ndatavault_server_sealed 0.0\n"))
    #expect(answer("/metrics", isForClients: true) == nil)
    #expect(answer("/metrics", method: "POST")?.status == 404)
    #expect(answer("/time/0")?.status == 404)
  }

  @Test func `no web page of another origin reads health and metrics`() {
    for target in ["/metrics", "/health/live"] {
      var buffer = ByteBuffer()
      answer(target)?.write(to: &buffer, answering: "GET", keepsAlive: true)
      #expect(!String(buffer: buffer).contains("Access-Control"))
    }
  }

  @Test func `ServerOperations reports its states to the service manager`() async {
    operations.didStart()
    operations.didUnseal()
    operations.didUnseal()
    operations.didSeal()
    await operations.reload([])
    operations.willStop()
    operations.willStop()
    operations.didSeal()
    let all = reports.all
    #expect(all.count == 6)
    #expect(all[0] == "READY=1\nSTATUS=sealed: run datavault unlock messaging")
    #expect(all[1] == "STATUS=serving")
    #expect(all[2] == "STATUS=sealed: run datavault unlock messaging")
    #expect(all[3].hasPrefix("RELOADING=1\nMONOTONIC_USEC="))
    #expect(all[4].hasPrefix("READY=1\n"))
    #expect(all[5].hasPrefix("STOPPING=1\n"))
  }

  @Test func `ServiceManager sends a datagram to a path and to an abstract name`() throws {
    for name in [folder.path("notify"), "@datavault-\(UUID())"] {
      let socket = try DatagramSocket(name)
      ServiceManager.send("READY=1\nSTATUS=serving", to: name)
      #expect(socket.receive() == "READY=1\nSTATUS=serving")
    }
    ServiceManager.send("READY=1", to: folder.path("nothing"))
    ServiceManager.send("READY=1", to: String(repeating: "a", count: 200))
  }

  @Test func `InheritedSocket takes the sockets that are meant for this process`() {
    let environment = [
      "LISTEN_PID": "42", "LISTEN_FDS": "5", "LISTEN_FDNAMES": "web:tls:operations:plain:stomp",
    ]
    let sockets = InheritedSocket.all(in: environment, processID: 42)
    #expect(sockets.map(\.descriptor) == [3, 4, 5, 6, 7])
    #expect(sockets.map(\.purpose) == [.usual, .encrypted, .operations, .plain, .stomp])
    #expect(InheritedSocket.all(in: environment, processID: 43).isEmpty)
    #expect(InheritedSocket.all(in: [:], processID: 42).isEmpty)
    let unnamed = InheritedSocket.all(
      in: ["LISTEN_PID": "42", "LISTEN_FDS": "1"], processID: 42)
    #expect(unnamed.map(\.purpose) == [.usual])
    for count in ["0", "-1", "1000", "x", ""] {
      #expect(
        InheritedSocket.all(in: ["LISTEN_PID": "42", "LISTEN_FDS": count], processID: 42).isEmpty)
    }
  }

  @Test func `the sockets of the service manager take the place of the addresses`() throws {
    var configuration = ServerConfiguration([])
    let address = try #require(ListenAddress("127.0.0.1:8080"))
    let metrics = try #require(ListenAddress("127.0.0.1:9090"))
    try configuration.listen(on: [address], operations: metrics, inherited: [], identity: nil)
    #expect(configuration.listening.map(\.address) == [address])
    #expect(configuration.operationsListening?.address == metrics)
    let operations = InheritedSocket(descriptor: 3, purpose: .operations, isTCP: true)
    try configuration.listen(
      on: [address], operations: metrics, inherited: [operations], identity: nil)
    #expect(configuration.listening.map(\.address) == [address])
    #expect(configuration.operationsListening?.address == ListenAddress(inherited: 3))
    let web = InheritedSocket(descriptor: 4, purpose: .usual, isTCP: true)
    try configuration.listen(
      on: [address], operations: nil, inherited: [operations, web], identity: nil)
    #expect(configuration.listening.map(\.address) == [ListenAddress(inherited: 4)])
    #expect(configuration.stompListening.isEmpty)
    let stomp = InheritedSocket(descriptor: 5, purpose: .stomp, isTCP: true)
    try configuration.listen(
      on: [address], stomp: [metrics], operations: nil, inherited: [stomp], identity: nil)
    #expect(configuration.listening.map(\.address) == [address])
    #expect(configuration.stompListening.map(\.address) == [ListenAddress(inherited: 5)])
    try configuration.listen(
      on: [address], stomp: [metrics], operations: nil, inherited: [web], identity: nil)
    #expect(configuration.stompListening.map(\.address) == [metrics])
    #expect(throws: ServerError.self) {
      try configuration.listen(
        on: [], operations: nil,
        inherited: [InheritedSocket(descriptor: 3, purpose: .encrypted, isTCP: true)], identity: nil
      )
    }
    #expect(throws: ServerError.self) {
      try configuration.listen(
        on: [], operations: nil, inherited: [operations, operations], identity: nil)
    }
  }

  @Test func `Watchdog is for the process that is named`() throws {
    #expect(Watchdog([:], processID: 1) == nil)
    #expect(Watchdog(["WATCHDOG_USEC": "0"], processID: 1) == nil)
    #expect(Watchdog(["WATCHDOG_USEC": "5", "WATCHDOG_PID": "2"], processID: 1) == nil)
    let watchdog = try #require(
      Watchdog(["WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"], processID: 1))
    #expect(watchdog.limit == .seconds(3))
  }

  @Test func `Watchdog gives signs while all event loops answer, and none when one hangs`()
    async throws
  {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
    let watchdog = try #require(Watchdog(["WATCHDOG_USEC": "20000"], processID: 1))
    let task = Task { [reports] in
      await watchdog.run(on: group, notify: { reports.add($0) })
    }
    try await eventually { reports.all.count >= 3 }
    task.cancel()
    await task.value
    #expect(Set(reports.all) == ["WATCHDOG=1"])
    let gate = DispatchSemaphore(value: 0)
    group.next().execute { gate.wait() }
    #expect(await !watchdog.answers(group))
    gate.signal()
    try await group.shutdownGracefully()
  }
}

/// A Unix socket that receives datagrams.
private final class DatagramSocket {
  private let descriptor: Int32

  init(_ name: String) throws {
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { path in
      path.copyBytes(from: Array(name.utf8))
      if name.hasPrefix("@") { path[0] = 0 }
    }
    let byteCount = socklen_t(2 + name.utf8.count)
    let result = withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, byteCount)
      }
    }
    try #require(result == 0)
  }

  deinit { close(descriptor) }

  func receive() -> String? {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    return count < 0 ? nil : String(decoding: buffer.prefix(count), as: UTF8.self)
  }
}
