import Foundation
import GRDB
import MessagingQueue
import TestSupport
import Testing

@testable import MessagingQueueLifecycle
@testable import ArticleExamples

/// Workers without an engine, a disk or a clock.
@Suite struct WorkerTests {
  private let channel: Channel

  init() throws { channel = try Channel("mails") }

  private func worker(_ handler: @escaping @Sendable (Job) async throws -> Void) -> Worker {
    Worker(channel, handler: handler)
  }

  @Test func `try() tells what becomes of a job, by what its handler returns or throws`()
    async throws
  {
    struct NoServer: Error { let secret = "s3cret" }
    #expect(try await worker { _ in }.try("a") == .acknowledged)
    #expect(
      try await worker { _ in throw NoServer() }.try("a", attempt: 3)
        == .retried(after: .seconds(40), reason: "NoServer"))
    #expect(
      try await worker { _ in throw JobFailure.retry(after: .seconds(5), reason: "busy") }.try("a")
        == .retried(after: .seconds(5), reason: "busy"))
    #expect(
      try await worker { _ in throw JobFailure.retry() }.try("a")
        == .retried(after: .seconds(10), reason: "retried"))
    #expect(
      try await worker { _ in throw JobFailure.reject(reason: "no") }.try("a")
        == .rejected(reason: "no"))
    #expect(
      try await worker { _ in throw EngineError(.busy, "s3cret") }.try("a")
        == .retried(after: .seconds(10), reason: "EngineError: busy"))
    #expect(
      try await worker { job in
        if job.delivery.isLastAttempt { throw JobFailure.reject(reason: "the last") }
      }.try("a", attempt: 20) == .rejected(reason: "the last"))
  }

  @Test(arguments: [
    "ü", "🇹🇭", "ที่นี่", "e\u{301}\u{302}", "a" + String(repeating: "\u{301}", count: 2000),
  ])
  func `a reason and a delay are kept within the engine's limits`(part: String) async throws {
    let long = String(repeating: part, count: 3000)
    let results = try await [
      worker { _ in throw JobFailure.reject(reason: long) }.try("a"),
      worker { _ in throw JobFailure.retry(after: .seconds(-1), reason: "") }.try("a"),
      worker { _ in throw JobFailure.retry(after: .seconds(1_000_000_000), reason: "a") }.try("a"),
    ]
    guard case .rejected(let reason) = results[0] else { throw JobFailure.retry() }
    #expect((1021...1024).contains(reason.utf8.count))
    #expect(long.utf8.starts(with: reason.utf8))
    #expect(results[1] == .retried(after: .zero, reason: "failed"))
    #expect(results[2] == .retried(after: .seconds(366 * 86_400), reason: "a"))
  }

  @Test func `complete() commits the handler's rows, and errors after it settle nothing more`()
    async throws
  {
    let database = try DatabaseQueue()
    let message = Message(channel: channel, "a")
    let completing = worker { job in
      try await job.complete { try $0.execute(sql: "CREATE TABLE mine (number)") }
      throw JobFailure.retry()
    }
    #expect(try await completing.try(message, database: database) == .acknowledged)
    #expect(try await database.read { try $0.tableExists("mine") })
    // Its transaction fails: the job is not acknowledged.
    #expect(
      try await completing.try(message, database: database)
        == .retried(after: .seconds(10), reason: "DatabaseError"))
    let rejecting = worker { job in
      try await job.reject(reason: "no") { try $0.execute(sql: "INSERT INTO mine VALUES (1)") }
    }
    #expect(try await rejecting.try(message, database: database) == .rejected(reason: "no"))
    #expect(
      try await database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM mine") } == 1)
    let settlingTwice = worker { job in
      try await job.complete()
      try await job.reject(reason: "no") { _ in }
    }
    #expect(try await settlingTwice.try("a") == .acknowledged)
    let failing = worker { job in try await job.complete { _ in throw JobFailure.retry() } }
    #expect(try await failing.try("a") == .retried(after: .seconds(10), reason: "retried"))
  }

  @Test func `a back-off grows to its bound, and jitter only shortens it`() {
    let backoff = Backoff()
    let delays = (1...20).map { backoff.delay(afterAttempt: $0, random: 0) }
    #expect(delays.prefix(4) == [.seconds(10), .seconds(20), .seconds(40), .seconds(80)])
    #expect(zip(delays, delays.dropFirst()).allSatisfy { $0 <= $1 })
    #expect(delays[19] == backoff.maximum)
    #expect(backoff.delay(afterAttempt: .max, random: 0) == backoff.maximum)
    #expect(backoff.delay(afterAttempt: 1, random: 1) == .seconds(9))
    #expect(backoff.delay(afterAttempt: 0, random: 0) == .seconds(10))
    // About two days, as the documentation says.
    let sum = delays.dropLast().reduce(.zero, +) / .seconds(86_400)
    #expect((1.8...2.5).contains(sum))
    var wild = Backoff()
    wild.jitter = 7
    wild.factor = 0
    wild.maximum = .seconds(-1)
    #expect(wild.delay(afterAttempt: 5, random: 3) == .zero)
  }

  @Test func `the reference lists every metric and every result of a worker`() throws {
    let page = try Repository.text("docs/reference/observation.md")
    for name in WorkerMetrics.Name.allCases { #expect(page.contains("| `\(name.rawValue)` |")) }
    for result in WorkerMetrics.Result.allCases { #expect(page.contains("| `\(result)` |")) }
  }

  @Test func `the article's code is compiled, and its worker rejects, fails and sends`()
    async throws
  {
    let article = try Repository.text(
      "Sources/MessagingQueueLifecycle/MessagingQueueLifecycle.docc/WritingWorkers.md")
    let code = try Repository.text("Tests/Support/ArticleExamples/WritingWorkers.swift")
    #expect(article.contains("```swift\n\(code)```\n"))

    struct NoServer: Error {}
    let mailer = Mailer(channel: channel) { if $0.to.isEmpty { throw NoServer() } }
    let database = try DatabaseQueue()
    try await database.write { try $0.execute(sql: "CREATE TABLE sent (timetoken)") }
    #expect(try await mailer.worker.try("no JSON") == .rejected(reason: "not a mail"))
    let nowhere = Message(channel: channel, try .json(Mail(to: "", text: "")))
    #expect(
      try await mailer.worker.try(nowhere) == .retried(after: .seconds(10), reason: "NoServer"))
    let mail = Message(channel: channel, try .json(Mail(to: "Ada", text: "Hello")))
    #expect(try await mailer.worker.try(mail, database: database) == .acknowledged)
    #expect(
      try await database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM sent") } == 1)
  }
}

/// Which channel receives, and how many.
@Suite struct WorkerScheduleTests {
  private let channel: Channel

  init() throws { channel = try Channel("c") }

  private func deliveries(_ count: Int) -> [Delivery] {
    (0..<count).map { number in
      Delivery(
        of: Message(channel: channel, "\(number)"),
        at: Timetoken(Date(timeIntervalSince1970: 2e9 + Double(number))), attempt: 1,
        maximumAttempts: nil)
    }
  }

  private func receives(_ actions: [WorkerSchedule.Action]) -> [Int: Int] {
    var counts: [Int: Int] = [:]
    for case .receive(let lane, let count) in actions { counts[lane, default: 0] += count }
    return counts
  }

  @Test func `free slots are shared by the ready channels in turn, within their limits`() {
    var schedule = WorkerSchedule(slotCount: 10, limits: [nil, 2, nil])
    #expect(receives(schedule.handle(.start)) == [0: 3, 1: 2, 2: 5])
    #expect(schedule.freeCount == 0)
    // The first got all it asked for; nothing is free for its next receive.
    #expect(receives(schedule.handle(.received(lane: 0, deliveries(3)))) == [:])
    // The slots that an empty channel leaves go to the channel that can use them.
    #expect(receives(schedule.handle(.received(lane: 2, []))) == [0: 5])
  }

  @Test func `a full channel starves no other`() {
    var schedule = WorkerSchedule(slotCount: 1, limits: [nil, nil, nil])
    var turns: [Int] = []
    var actions = schedule.handle(.start)
    for _ in 0..<9 {
      guard case .receive(let lane, 1)? = actions.last else { break }
      turns.append(lane)
      _ = schedule.handle(.received(lane: lane, deliveries(1)))
      actions = schedule.handle(.finished(lane: lane))
    }
    #expect(turns == [0, 1, 2, 0, 1, 2, 0, 1, 2])
  }

  @Test func `a channel that is paused while it receives gives the jobs back`() {
    var schedule = WorkerSchedule(slotCount: 1, limits: [nil])
    _ = schedule.handle(.start)
    _ = schedule.handle(.paused([0]))
    let job = deliveries(1)[0]
    #expect(schedule.handle(.received(lane: 0, [job])) == [.giveBack(lane: 0, job)])
  }

  @Test func `a paused channel receives nothing until it is resumed`() {
    var schedule = WorkerSchedule(slotCount: 4, limits: [nil, nil])
    #expect(receives(schedule.handle(.paused([0]))) == [1: 4])
    #expect(schedule.handle(.received(lane: 1, [])) == [.awaitMessages(lane: 1)])
    #expect(receives(schedule.handle(.paused([]))) == [0: 4])
  }

  @Test func `a drain gives back what was being received, and ends after the last job`() {
    var schedule = WorkerSchedule(slotCount: 2, limits: [1, 1])
    _ = schedule.handle(.start)
    let jobs = deliveries(2)
    #expect(schedule.handle(.received(lane: 0, [jobs[0]])) == [.run(lane: 0, jobs[0])])
    #expect(schedule.handle(.drain) == [.cancelWaits])
    #expect(schedule.handle(.received(lane: 1, [jobs[1]])) == [.giveBack(lane: 1, jobs[1])])
    #expect(schedule.handle(.finished(lane: 1)) == [])
    #expect(schedule.handle(.stopNow) == [.cancelJobs])
    #expect(schedule.handle(.finished(lane: 0)) == [.end])
    #expect(schedule.handle(.ready(lane: 0)) == [])
  }

  @Test func `random events never lease more jobs than there are slots`() {
    var random = SeededRandom(seed: 16)
    for _ in 0..<50 {
      let slots = 1 + random.next(8)
      let limits = (0..<1 + random.next(6)).map { _ in random.oneIn(2) ? 1 + random.next(3) : nil }
      var schedule = WorkerSchedule(slotCount: slots, limits: limits)
      var pending: [WorkerSchedule.Action] = schedule.handle(.start)
      var runs = 0
      for _ in 0..<400 where !pending.isEmpty {
        let action = pending.remove(at: random.next(pending.count))
        var next: [WorkerSchedule.Action] = []
        switch action {
        case .receive(let lane, let count):
          let got = deliveries(random.next(count + 1))
          next = schedule.handle(
            random.oneIn(9) ? .receiveFailed(lane: lane) : .received(lane: lane, got))
        case .awaitMessages(let lane), .retryLater(let lane):
          next = schedule.handle(.ready(lane: lane))
        case .run(let lane, _):
          runs += 1
          next = schedule.handle(.finished(lane: lane))
        default: break
        }
        pending += next
        #expect(schedule.freeCount >= 0)
      }
      #expect(runs > 0)
      #expect(!pending.isEmpty, "the schedule has stopped")
    }
  }
}
