public import Foundation

/// Failed logins, and what follows from them for the next attempt: a value without a clock.
///
/// It decides before a key is derived. A source that has not failed for a user never waits because
/// others have: wrong passwords lock no user out from another source. A user who has logged in from a
/// source is known there: no guesses of strangers delay that user's next login from it.
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
    /// Attempts under way, those that are derived included, of users who are not known at their source.
    var attemptCount = 32
    var sourceAttemptCount = 4
    /// Of these, the attempts of a network, which can have many sources.
    var networkAttemptCount = 8
    /// Attempts under way of users who are known at their source.
    var knownAttemptCount = 16
    /// How long a user is known at a source after a login.
    var knownTime: TimeInterval = 30 * 86_400
    /// The most subjects that are counted, and the most users that are known at a source.
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
  /// When the users who are known at a source logged in there.
  private var known: [LoginSubject: Date] = [:]
  /// The attempts under way of each source and each network, without those of users who are known.
  private var underWay: [LoginSubject: Int] = [:]
  private var attemptCount = 0
  /// The attempts under way of users who are known, by user and source.
  private var knownUnderWay: [LoginSubject: Int] = [:]
  private var knownAttemptCount = 0
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

  /// Whether the user has logged in from the source before.
  public func isKnown(_ attempt: LoginAttempt, at now: Date) -> Bool {
    known[attempt.pair].map { now.timeIntervalSince($0) <= limits.knownTime } ?? false
  }

  /// Decides about an attempt.
  ///
  /// One that is checked counts as failed until it has succeeded, so that attempts at the same time
  /// do not get past the count.
  public mutating func begin(_ attempt: LoginAttempt, at now: Date) -> Verdict {
    forget(attempt, at: now)
    let isKnown = isKnown(attempt, at: now)
    let wait = wait(attempt, isKnown: isKnown, at: now)
    if wait > 0 { return .wait(seconds: max(1, Int(wait.rounded(.up)))) }
    guard takePlace(attempt, isKnown: isKnown) else { return .busy }
    makeRoom(at: now)
    for subject in attempt.subjects {
      let failures = counts[subject]?.failures ?? 0
      counts[subject] = Count(failures: min(failures, 1 << 20) + 1, last: now)
      unsaved.insert(subject)
    }
    return .check
  }

  private mutating func takePlace(_ attempt: LoginAttempt, isKnown: Bool) -> Bool {
    if isKnown {
      guard knownAttemptCount < limits.knownAttemptCount else { return false }
      knownAttemptCount += 1
      knownUnderWay[attempt.pair, default: 0] += 1
      return true
    }
    guard attemptCount < limits.attemptCount,
      underWay[attempt.source, default: 0] < limits.sourceAttemptCount,
      underWay[attempt.network, default: 0] < limits.networkAttemptCount
    else { return false }
    attemptCount += 1
    for subject in [attempt.source, attempt.network] { underWay[subject, default: 0] += 1 }
    return true
  }

  private mutating func returnPlace(_ attempt: LoginAttempt) {
    if let count = knownUnderWay[attempt.pair] {
      knownAttemptCount -= 1
      knownUnderWay[attempt.pair] = count > 1 ? count - 1 : nil
    } else {
      attemptCount -= 1
      for subject in [attempt.source, attempt.network] {
        let others = (underWay[subject] ?? 1) - 1
        underWay[subject] = others > 0 ? others : nil
      }
    }
  }

  /// Ends an attempt that was checked.
  public mutating func end(_ attempt: LoginAttempt, succeeded: Bool) {
    returnPlace(attempt)
    guard succeeded else { return }
    if known.count >= limits.subjectCount {
      let oldestFirst = known.sorted { $0.value < $1.value }
      for (pair, _) in oldestFirst.prefix(limits.subjectCount / 4) { known[pair] = nil }
    }
    known[attempt.pair] = counts[attempt.pair]?.last
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

  private func wait(_ attempt: LoginAttempt, isKnown: Bool, at now: Date) -> TimeInterval {
    // Others at the source can have guessed: behind a proxy, they share it.
    var wait =
      isKnown
      ? 0 : wait(counts[attempt.source], limits.sourceFreeCount, limits.sourceLongestWait, now)
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
