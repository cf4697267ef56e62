@testable import MessagingClient
import Synchronization
import TestSupport
import Testing
import VaultCrypto

/// One prompt at a time for each protection space.
@Suite(.timeLimit(.minutes(10))) struct PromptTurnsTests {
  /// A handler that is an object, and answers when the test says so.
  private final class Prompt: ChallengeHandler {
    private struct State {
      var open: [CheckedContinuation<String?, Never>] = []
      var askedCount = 0
      var mostOpen = 0
    }
    private let state = Mutex(State())

    var askedCount: Int { state.withLock { $0.askedCount } }
    var openCount: Int { state.withLock { $0.open.count } }
    var mostOpen: Int { state.withLock { $0.mostOpen } }

    func canHandle(_ request: ChallengeRequest) -> Bool { true }

    func handle(_ request: ChallengeRequest) async throws -> ChallengeResponse? {
      let text = await withCheckedContinuation { continuation in
        state.withLock { state in
          state.open.append(continuation)
          state.askedCount += 1
          state.mostOpen = max(state.mostOpen, state.open.count)
        }
      }
      return text.map { ChallengeResponse(authorization: secret($0)) }
    }

    /// Ends the oldest prompt.
    func end(_ text: String?) async throws {
      try await eventually { self.openCount > 0 }
      state.withLock { $0.open.isEmpty ? nil : $0.open.removeFirst() }?.resume(returning: text)
    }
  }

  /// The prompt of another handler, which is a value.
  private struct Wrapped: ChallengeHandler {
    let prompt: Prompt
    func canHandle(_ request: ChallengeRequest) -> Bool { true }
    func handle(_ request: ChallengeRequest) async throws -> ChallengeResponse? {
      try await prompt.handle(request)
    }
  }

  private let challengeGuard = ChallengeGuard(clock: ManualClock())
  private let prompt = Prompt()

  private func space(_ realm: String = "r") throws -> ProtectionSpace {
    ProtectionSpace(try Origin("https://h"), realm: realm)
  }

  private func authenticator(_ handler: any ChallengeHandler) throws -> Authenticator {
    Authenticator(
      connectionTo: try Origin("https://h"), handler: handler, challengeGuard: challengeGuard)
  }

  /// Begins to answer a 401 in a task.
  private func begin(
    _ authenticator: Authenticator, at url: String = "https://h/a", realm: String = "r"
  ) throws -> Task<String, Never> {
    let location = try Location(url)
    return Task {
      do throws(AuthenticationError) {
        return try await authenticator.answer(["Test realm=\(realm)"], at: location).authorization
          .text()
      } catch {
        return "\(error.code)"
      }
    }
  }

  private func waitForWaiters(_ count: Int) async throws {
    let space = try space()
    try await eventually { challengeGuard.turns.waiterCount(space) == count }
  }

  @Test func `connections with the same handler and location share one prompt`() async throws {
    let tasks = try (0..<5).map { _ in try begin(authenticator(prompt)) }
    try await waitForWaiters(4)
    try await prompt.end("Test a")
    for task in tasks { #expect(await task.value == "Test a") }
    #expect(prompt.askedCount == 1)
    #expect(challengeGuard.turns.waiterCount(try space()) == nil)
  }

  @Test func `a cancelled prompt is cancelled for all of them`() async throws {
    let tasks = try (0..<3).map { _ in try begin(authenticator(prompt)) }
    try await waitForWaiters(2)
    try await prompt.end(nil)
    for task in tasks { #expect(await task.value == "cancelled") }
    #expect(prompt.askedCount == 1)
  }

  @Test func `others wait for their turn: another location, and handlers that are values`()
    async throws
  {
    let tasks = [
      try begin(authenticator(prompt)), try begin(authenticator(prompt), at: "https://h/b"),
      try begin(authenticator(Wrapped(prompt: prompt))),
      try begin(authenticator(Wrapped(prompt: prompt))),
    ]
    try await waitForWaiters(3)
    for number in 0..<4 { try await prompt.end(number == 1 ? nil : "Test same") }
    var answers: [String] = []
    for task in tasks { answers.append(await task.value) }
    #expect(answers.filter { $0 == "Test same" }.count == 3)
    #expect(prompt.askedCount == 4)
    #expect(prompt.mostOpen == 1)
  }

  @Test func `another realm does not wait`() async throws {
    let first = try begin(authenticator(prompt))
    let second = try begin(authenticator(prompt), realm: "other")
    try await eventually { prompt.openCount == 2 }
    try await prompt.end("Test a")
    try await prompt.end("Test a")
    #expect(await first.value == "Test a")
    #expect(await second.value == "Test a")
  }

  @Test func `a task that is cancelled while it waits leaves the others waiting`() async throws {
    let first = try begin(authenticator(prompt))
    try await eventually { prompt.openCount == 1 }
    let second = try begin(authenticator(prompt))
    try await waitForWaiters(1)
    let third = try begin(authenticator(prompt))
    try await waitForWaiters(2)
    second.cancel()
    #expect(await second.value == "cancelled")
    try await prompt.end("Test a")
    #expect(await first.value == "Test a")
    #expect(await third.value == "Test a")
  }

  @Test
  func `a connection that closed during its prompt gets no answer, but its next attempt does`()
    async throws
  {
    let closing = try authenticator(prompt)
    let first = try begin(closing)
    try await eventually { prompt.openCount == 1 }
    await closing.closed()
    let second = try begin(closing)
    try await waitForWaiters(1)
    try await prompt.end("Test a")
    #expect(await first.value == "cancelled")
    #expect(await second.value == "Test a")
    #expect(prompt.askedCount == 1)
  }

  @Test func `two challenges of one connection are not answered together`() async throws {
    let authenticator = try authenticator(prompt)
    let first = try begin(authenticator)
    try await eventually { prompt.openCount == 1 }
    #expect(await (try begin(authenticator)).value == "cancelled")
    try await prompt.end("Test a")
    #expect(await first.value == "Test a")
  }

  @Test func `who waited is not asked after the attempts are used up`() async throws {
    let first = try begin(authenticator(Wrapped(prompt: prompt)))
    try await eventually { prompt.openCount == 1 }
    let second = try begin(authenticator(Wrapped(prompt: prompt)))
    try await waitForWaiters(1)
    for text in ["Test x", "Test y", "Test z"] {
      challengeGuard.settle(
        try challengeGuard.send(secret(text), to: space(), isRepeatable: true), .refused)
    }
    try await prompt.end("Test a")
    #expect(await first.value == "tooManyAttempts")
    #expect(await second.value == "tooManyAttempts")
    #expect(prompt.askedCount == 1)
  }

  @Test func `an authenticator and its handler are released together with the connection`()
    async throws
  {
    weak var released: Authenticator?
    weak var releasedPrompt: Prompt?
    do {
      let prompt = Prompt()
      let authenticator = try authenticator(prompt)
      (released, releasedPrompt) = (authenticator, prompt)
      let task = try begin(authenticator)
      try await prompt.end("Test a")
      #expect(await task.value == "Test a")
    }
    try await eventually { released == nil && releasedPrompt == nil }
  }
}
