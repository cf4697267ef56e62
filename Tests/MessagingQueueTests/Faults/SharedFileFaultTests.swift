import FaultVFS
import FileRecording
import GRDB
import MessagingQueue
import SystemPackage
import Testing

/// Several engines on one file, one of them with a fault.
@Suite struct SharedFileFaultTests {
  private let plain: PlainEngine
  private let channel = Channel.orders

  init() throws {
    plain = try PlainEngine()
  }

  /// An engine of its own over a failing disk.
  private func engine(_ recorder: FileRecorder) throws -> MessagingEngine {
    try plain.neighbour(through: RecordingVFS(recorder).name)
  }

  private func log() throws -> [String] {
    try plain.pool.writeWithoutTransaction { db in
      try String.fetchAll(db, sql: "SELECT CAST(payload AS TEXT) FROM message ORDER BY timetoken")
    }
  }

  @Test(arguments: [Errno.noSpace, .ioError, .readOnlyFileSystem])
  func `an engine with a failing disk affects no other, and continues after the repair`(
    errno: Errno
  ) async throws {
    // As many steps as its start needs.
    let quiet = FileRecorder()
    try await engine(quiet).stop()
    let recorder = FileRecorder(fault: .failures(fromEvent: quiet.failableEventCount + 3, errno))
    let failing = try engine(recorder)
    let healthy = try plain.neighbour()
    var (kept, unknown) = ([String](), Set<String>())
    for round in 0..<10 {
      for (name, engine) in [("failing", failing), ("healthy", healthy)] {
        let text = "\(name) \(round)"
        switch await code({ try await engine.publish([text], to: channel) }) {
        case nil: kept.append(text)
        case .outcomeUnknown:
          #expect(name == "failing")
          unknown.insert(text)
        case let code:
          #expect(name == "failing")
          #expect(code == (errno == .noSpace ? .diskFull : .inputOutput))
        }
      }
      if round == 6 { recorder.lift() }
    }
    #expect(recorder.hasOccurred)
    #expect(kept.filter { $0.hasPrefix("healthy") }.count == 10)
    #expect(kept.suffix(2) == ["failing 9", "healthy 9"])
    #expect(try log().filter { !unknown.contains($0) } == kept)
    // Each receives what the other has published.
    let first = try await failing.receive(from: channel, maximumCount: 3)
    let rest = try await healthy.receive(from: channel, maximumCount: 100)
    #expect(try (first + rest).map(\.text) == log())
    try await failing.stop()
    try await healthy.stop()
  }

  @Test func `a publish fails with busy during another's transaction, and succeeds after it`()
    async throws
  {
    let waiting = try plain.neighbour { $0.busyTimeout = .milliseconds(10) }
    let other = try plain.neighbour()
    try await waiting.publish(["a"], to: channel)
    let gate = WriterGate(other.pool, holding: "BEGIN IMMEDIATE")
    #expect(await code { try await waiting.publish(["lost"], to: channel) } == .busy)
    #expect(await code { _ = try await waiting.receive(from: channel) } == .busy)
    #expect(await code { try await waiting.setRetention(Retention(), of: channel) } == .busy)
    // Readers wait for no writer.
    #expect(try await waiting.history(of: channel).count == 1)
    gate.open()
    try await waiting.publish(["b"], to: channel)
    #expect(try log() == ["a", "b"])
    try await waiting.stop()
    try await other.stop()
  }

  @Test func `many engines publish and receive every message once`() async throws {
    let engines = try (0..<3).map { _ in try plain.neighbour() }
    let (perPublisher, channel) = (40, channel)
    let received = try await withThrowingTaskGroup(of: [String].self) { group in
      for (number, engine) in engines.enumerated() {
        group.addTask {
          for index in 0..<perPublisher {
            try await engine.publish(["\(number) \(index)"], to: channel)
          }
          return []
        }
        group.addTask {
          var texts: [String] = []
          while true {
            let deliveries = try await engine.receive(
              from: channel, maximumCount: 7, waitingUpTo: .milliseconds(300))
            if deliveries.isEmpty { return texts }
            texts += deliveries.map(\.text)
            try await engine.acknowledge(deliveries.map(\.token))
          }
        }
      }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    let rest = try await engines[0].receive(from: channel, maximumCount: 1000).map(\.text)
    let all = (0..<3).flatMap { number in (0..<perPublisher).map { "\(number) \($0)" } }
    #expect((received + rest).sorted() == all.sorted())
    for engine in engines { try await engine.stop() }
  }
}
