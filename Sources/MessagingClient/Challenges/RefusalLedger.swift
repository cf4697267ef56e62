internal import VaultCrypto

/// What one origin has refused, as values: no clock, no lock.
struct RefusalLedger: Sendable {
  /// A realm by its bytes; Swift compares strings by canonical equivalence.
  struct Realm: Hashable, Sendable {
    private let bytes: [UInt8]?

    init(_ realm: String?) { bytes = realm.map { Array($0.utf8) } }
  }

  enum Refusal: Sendable, Equatable {
    case refusedBefore
    case wait(Duration)
  }

  private struct Record: Sendable {
    var refusalCount = 0
    var unansweredCount = 0
    var lastTime = Duration.zero
    var refusedTags: [[UInt8]] = []
    /// Answers on their way, of which the server can refuse each.
    var pendingTags: [[UInt8]] = []

    var isCounting: Bool { refusalCount > 0 || unansweredCount > 0 }
  }

  static let maximumTagCount = 64
  /// Records that no longer count are kept for their tags, up to this number.
  static let maximumRecordCount = 64

  private var records: [Realm: Record] = [:]

  /// How many refusals count now.
  func count(_ realm: Realm, _ limits: ChallengeGuard.Limits, at now: Duration) -> Int {
    guard let record = records[realm], now - record.lastTime < limits.pause else { return 0 }
    return record.refusalCount
  }

  /// How long no answer can be sent; nil if one can.
  func wait(_ realm: Realm, _ limits: ChallengeGuard.Limits, at now: Duration) -> Duration? {
    let counting = records.filter { $0.value.isCounting && now - $0.value.lastTime < limits.pause }
    guard let record = counting[realm] else {
      // A server that sends another realm each time would otherwise have no limit.
      guard counting.count >= ChallengeGuard.maximumRealmCount else { return nil }
      return counting.values.map { limits.pause - (now - $0.lastTime) }.min()
    }
    guard
      record.refusalCount >= max(1, limits.refusalLimit)
        || record.unansweredCount >= max(1, limits.unansweredLimit)
    else { return nil }
    return limits.pause - (now - record.lastTime)
  }

  /// Notes an answer on its way, unless it is refused.
  mutating func send(_ answer: SentAnswer, _ limits: ChallengeGuard.Limits, at now: Duration)
    -> Refusal?
  {
    let realm = answer.space.realm
    if let wait = wait(realm, limits, at: now) { return .wait(wait) }
    guard let tag = answer.tag else { return nil }
    var record = records[realm] ?? Record()
    if Self.contains(tag, in: record.refusedTags) { return .refusedBefore }
    // Several connections can send the same password together, but not more passwords than the limit.
    let others = Set(record.pendingTags.filter { !Self.isEqual($0, tag) }).count
    if count(realm, limits, at: now) + others >= max(1, limits.refusalLimit) {
      return .wait(limits.pause)
    }
    record.pendingTags.append(tag)
    records[realm] = record
    return nil
  }

  /// Notes what became of an answer.
  mutating func settle(
    _ answer: SentAnswer, _ result: SentAnswer.Result, _ limits: ChallengeGuard.Limits,
    at now: Duration
  ) {
    let realm = answer.space.realm
    var record = records[realm] ?? Record()
    if let tag = answer.tag,
      let index = record.pendingTags.firstIndex(where: { Self.isEqual($0, tag) })
    {
      record.pendingTags.remove(at: index)
    }
    if now - record.lastTime >= limits.pause {
      (record.refusalCount, record.unansweredCount) = (0, 0)
    }
    switch result {
    case .refused:
      record.unansweredCount = 0
      if let tag = answer.tag {
        // Other connections sent the same password: one refusal for all of them.
        if Self.contains(tag, in: record.refusedTags) { break }
        record.refusedTags = record.refusedTags.suffix(Self.maximumTagCount - 1) + [tag]
      }
      record.refusalCount += 1
      record.lastTime = now
    case .accepted:
      record.refusalCount = 0
      record.unansweredCount = 0
      if let tag = answer.tag { record.refusedTags.removeAll { Self.isEqual($0, tag) } }
    case .unanswered:
      record.unansweredCount += 1
      record.lastTime = now
    case .left: break
    }
    let isEmpty = !record.isCounting && record.refusedTags.isEmpty && record.pendingTags.isEmpty
    records[realm] = isEmpty ? nil : record
    dropOldest()
  }

  /// Forgets all but the answers on their way.
  mutating func reset() {
    records = records.compactMapValues { record in
      record.pendingTags.isEmpty ? nil : Record(pendingTags: record.pendingTags)
    }
  }

  private mutating func dropOldest() {
    guard records.count > Self.maximumRecordCount else { return }
    let oldest = records.filter(\.value.pendingTags.isEmpty).min {
      $0.value.lastTime < $1.value.lastTime
    }
    if let oldest { records[oldest.key] = nil }
  }

  private static func contains(_ tag: [UInt8], in tags: [[UInt8]]) -> Bool {
    // Looks at all of them.
    tags.reduce(false) { isEqual($1, tag) || $0 }
  }

  private static func isEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    unsafe isEqualInConstantTime(a.span.bytes, b.span.bytes)
  }
}

// For tests.
extension RefusalLedger {
  var recordCount: Int { records.count }
  var tagCount: Int {
    records.values.reduce(0) { $0 + $1.refusedTags.count + $1.pendingTags.count }
  }
}
