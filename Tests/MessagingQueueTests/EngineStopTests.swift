import Dispatch
import MessagingQueue
import TestSupport
import Testing

@Suite struct EngineStopTests {
  private let plain: PlainEngine
  private let channel = Channel.orders

  init() throws {
    plain = try PlainEngine()
  }

  private func engine(
    stopTimeout: Duration = .seconds(3600), closePool: @escaping @Sendable () throws -> Void = {}
  ) throws -> MessagingEngine {
    try plain.engine({ $0.stopTimeout = stopTimeout }, closePool: closePool)
  }

  private func publishing(_ byte: UInt8, on engine: MessagingEngine) -> Task<
    EngineError.Code?, Never
  > {
    let message = Message(channel: channel, payload: [byte])
    return Task { await code { try await engine.publish(message) } }
  }

  @Test func `a stopped engine refuses every operation`() async throws {
    let engine = try engine()
    try await engine.publish(Message(channel: channel, payload: [1]))
    try await engine.stop()
    #expect(await publishing(2, on: engine).value == .stopped)
    #expect(await code { _ = try await engine.receive(from: channel) } == .stopped)
    #expect(try plain.database.receive(9, from: channel).map(\.payload) == [[1]])
  }

  @Test func `stop() finishes waiting commits and then refuses every call`()
    async throws
  {
    let engine = try engine()
    #expect(engine.state == .running)
    let gate = WriterGate(plain.pool)
    let waiting = publishing(1, on: engine)
    try await eventually { engine.waitingCount > 0 }
    let stopping = Task { await code { try await engine.stop() } }
    try await eventually { engine.state == .stopping }
    #expect(await publishing(2, on: engine).value == .stopped)
    gate.open()
    #expect(await waiting.value == nil)
    #expect(await stopping.value == nil)
    #expect(engine.state == .stopped)
    #expect(await code { _ = try await engine.receive(from: channel) } == .stopped)
    #expect(try plain.database.receive(9, from: channel).map(\.payload) == [[1]])
  }

  @Test func `stop() waits no longer than stopTimeout`() async throws {
    let engine = try engine(stopTimeout: .milliseconds(20))
    let gate = WriterGate(plain.pool)
    let waiting = publishing(1, on: engine)
    try await eventually { engine.waitingCount > 0 }
    #expect(await code { try await engine.stop() } == nil)
    #expect(await waiting.value == .stopped)
    #expect(engine.state == .stopped)
    gate.open()
    #expect(try plain.database.receive(9, from: channel) == [])
  }

  @Test func `stop() closes the database even if its task is cancelled`() async throws {
    let closed = Reports()
    let engine = try engine(closePool: { closed.note() })
    let stopping = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await code { try await engine.stop() }
    }
    #expect(await stopping.value == nil)
    #expect(closed.noteCount == 1)
  }

  @Test func `a second stop() waits for the first and closes nothing`() async throws {
    let closed = Reports()
    let engine = try engine(closePool: { closed.note() })
    async let first: Void = engine.stop()
    async let second: Void = engine.stop()
    _ = try await (first, second)
    #expect(engine.state == .stopped)
    try await engine.stop()
    #expect(closed.noteCount == 1)
  }

  @Test func `stop() reports a database that cannot be closed, and the engine ends`() async throws {
    let engine = try engine(closePool: { throw EngineError(.busy, "a read is active") })
    #expect(await code { try await engine.stop() } == .busy)
    #expect(engine.state == .stopped)
  }

  @Test func `stop() closes the database only after all reads end, and refuses new reads`()
    async throws
  {
    let closed = Reports()
    let engine = try engine(stopTimeout: .milliseconds(1), closePool: { closed.note() })
    try await engine.publish(Message(channel: channel, payload: [1]))
    let (entered, leave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let reading = Task {
      await code {
        _ = try await engine.exportMessages { _ in
          entered.signal()
          leave.wait()
          leave.signal()
        }
      }
    }
    await wait(for: entered)
    #expect(await code { try await engine.stop() } == .busy)
    #expect(closed.noteCount == 0)
    leave.signal()
    #expect(await reading.value == nil)
    try await eventually { closed.noteCount > 0 }
    #expect(closed.noteCount == 1)
  }

  @Test func `an observer can follow the states of an engine`() async throws {
    let engine = try engine()
    var states = engine.states.makeAsyncIterator()
    try await engine.stop()
    #expect(await states.next() == .running)
    #expect(await states.next() == .stopping)
    #expect(await states.next() == .stopped)
  }
}
