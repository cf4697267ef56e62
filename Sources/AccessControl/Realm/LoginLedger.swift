public import Foundation

/// Failed logins, and what follows from them for the next attempt: a value without a clock.
///
/// It decides before a key is derived. A source that has not failed for a user never waits because
/// others have: wrong passwords lock no user out from another source.
public struct LoginLedger: Sendable {
  /// How long attempts wait, and how many are under way.
  public struct Limits: Sendable {
    /// Failures after which a source waits for a user; the wait begins with a second and doubles.
    var pairFreeCount = 3
    var pairLongestWait: TimeInterval = 300
    /// Failures after which a source waits for all users.
    var sourceFreeCount = 10
    var sourceLongestWait: TimeInterval = 60
    /// Failures of a user after which each source that has failed for that user waits.
    var userFreeCount = 10
    var userLongestWait: TimeInterval = 30
    /// How long after the last failure the count is forgotten.
    public var memory: TimeInterval = 3600
    /// Attempts under way, the one that is derived included.
    var attemptCount = 32
    var sourceAttemptCount = 4
    /// The most subjects that are counted.
    public var subjectCount = 10_000

    /// Makes the default limits.
    public init() {}
  }

  /// What follows from earlier attempts.
  public enum Verdict: Sendable, Hashable {
    /// Check the password, then call ``end(_:succeeded:)``.
    case check
    /// Refuse: the next attempt can come after so many seconds.
    case wait(seconds: Int)
    /// Refuse for now: as many attempts as possible are under way.
    case busy
  }

  /// A row of the table.
  public struct Record: Sendable, Hashable {
    /// Whose failures are counted.
    public let subject: LoginSubject
    /// How many there were.
    public let failureCount: Int
    /// When the last one was.
    public let last: Date

    /// Takes a row.
    public init(_ subject: LoginSubject, failureCount: Int, last: Date) {
      self.subject = subject
      self.failureCount = failureCount
      self.last = last
    }
  }

  private struct Count: Sendable {
    var failures: Int
    var last: Date
  }

  private let limits: Limits
  private var counts: [LoginSubject: Count] = [:]
  private var underWay: [LoginSubject: Int] = [:]
  private var attemptCount = 0
  /// What has changed since the last save.
  private var unsaved: Set<LoginSubject> = []

  /// Takes what a table has.
  public init(_ records: [Record] = [], limits: Limits = Limits()) {
    self.limits = limits
    for record in records.prefix(limits.subjectCount) {
      counts[record.subject] = Count(failures: record.failureCount, last: record.last)
    }
  }

  /// How many subjects are counted.
  public var count: Int { counts.count }

  /// Decides about an attempt.
  ///
  /// One that is checked counts as failed until it has succeeded, so that attempts at the same time
  /// do not get past the count.
  public mutating func begin(_ attempt: LoginAttempt, at now: Date) -> Verdict {
    forget(attempt, at: now)
    let wait = wait(attempt, at: now)
    if wait > 0 { return .wait(seconds: max(1, Int(wait.rounded(.up)))) }
    guard attemptCount < limits.attemptCount,
      underWay[attempt.source, default: 0] < limits.sourceAttemptCount
    else { return .busy }
    attemptCount += 1
    underWay[attempt.source, default: 0] += 1
    makeRoom(at: now)
    for subject in attempt.subjects {
      let failures = counts[subject]?.failures ?? 0
      counts[subject] = Count(failures: min(failures, 1 << 20) + 1, last: now)
      unsaved.insert(subject)
    }
    return .check
  }

  /// Ends an attempt that was checked.
  public mutating func end(_ attempt: LoginAttempt, succeeded: Bool) {
    attemptCount -= 1
    let others = (underWay[attempt.source] ?? 1) - 1
    underWay[attempt.source] = others > 0 ? others : nil
    guard succeeded else { return }
    // The pair starts again. Source and user lose this attempt only: who has one password must
    // not clear the count of guesses at others.
    counts[attempt.pair] = nil
    unsaved.insert(attempt.pair)
    for subject in [attempt.source, attempt.user] {
      guard let count = counts[subject] else { continue }
      counts[subject] =
        count.failures > 1
        ? Count(failures: count.failures - 1, last: count.last) : nil
      unsaved.insert(subject)
    }
  }

  private func wait(_ attempt: LoginAttempt, at now: Date) -> TimeInterval {
    var wait = wait(
      counts[attempt.source], limits.sourceFreeCount, limits.sourceLongestWait, now)
    guard let pair = counts[attempt.pair] else { return wait }
    wait = max(wait, self.wait(pair, limits.pairFreeCount, limits.pairLongestWait, now))
    // The last failure of this source counts, so that those of others do not move its end.
    let user = counts[attempt.user].map { Count(failures: $0.failures, last: pair.last) }
    return max(wait, self.wait(user, limits.userFreeCount, limits.userLongestWait, now))
  }

  private func wait(
    _ count: Count?, _ freeCount: Int, _ longest: TimeInterval, _ now: Date
  ) -> TimeInterval {
    guard let count, count.failures >= freeCount else { return 0 }
    let time = min(longest, pow(2, Double(min(count.failures - freeCount, 30))))
    // A clock that was put back makes no wait longer.
    return min(time, time - now.timeIntervalSince(count.last))
  }

  private mutating func forget(_ attempt: LoginAttempt, at now: Date) {
    for subject in attempt.subjects {
      guard let count = counts[subject], now.timeIntervalSince(count.last) > limits.memory else {
        continue
      }
      counts[subject] = nil
      unsaved.insert(subject)
    }
  }

  /// Keeps the number of subjects bounded: those that failed longest ago go first.
  private mutating func makeRoom(at now: Date) {
    guard counts.count + 3 > limits.subjectCount else { return }
    let oldestFirst = counts.sorted { $0.value.last < $1.value.last }
    let ended = oldestFirst.prefix { now.timeIntervalSince($0.value.last) > limits.memory }.count
    for (subject, _) in oldestFirst.prefix(max(ended, limits.subjectCount / 4)) {
      counts[subject] = nil
      unsaved.insert(subject)
    }
  }

  /// What a table must change since the last call: counts to store, and subjects to remove.
  public mutating func takeUnsaved() -> (stored: [Record], removed: [LoginSubject]) {
    defer { unsaved = [] }
    var stored: [Record] = []
    var removed: [LoginSubject] = []
    for subject in unsaved {
      if let count = counts[subject] {
        stored.append(Record(subject, failureCount: count.failures, last: count.last))
      } else {
        removed.append(subject)
      }
    }
    return (stored, removed)
  }
}

extension LoginAttempt {
  fileprivate var subjects: [LoginSubject] { [source, user, pair] }
}
