internal import ApplicationStore
internal import MessagingQueue

/// Why a publication is refused before it reaches the log.
enum PublishingRefusal: Error, Sendable, Equatable {
  /// Too much waits for its commit.
  case busy
  /// The application stores too much.
  case quota
  /// The application has too many channels for another one.
  case channels
  /// The brokers of the cluster do not answer.
  case cutOff

  /// For people.
  var message: String {
    switch self {
    case .busy: "Too many messages wait for the disk"
    case .quota: "Storage quota exceeded"
    case .channels: "Channel quota exceeded"
    case .cutOff: HomeGate.cutOff
    }
  }

  /// The status of HTTP.
  var status: Int { self == .cutOff ? 503 : 429 }
}

/// What a transaction does to leases.
struct LeaseSettlements: Sendable {
  var acknowledged: [LeaseToken] = []
  var released: [LeaseToken] = []
  var rejected: [LeaseToken] = []

  /// The reason that a rejection leaves at a dead letter.
  static let rejectionReason = "rejected by its receiver"
}

extension OpenHome {
  /// Publishes messages of an application, all or none, for every protocol: they are on the disk when it returns.
  ///
  /// - Returns: their places in the log.
  /// - Throws: ``PublishingRefusal`` if too much waits for its commit or the application stores too much; the errors of
  ///   the engine.
  func publish(
    _ messages: [Message], of application: DirectoryEntry
  ) async throws -> [Timetoken] {
    try await admit(messages, of: application) { try await engine.publish(messages) }
  }

  /// Publishes messages and settles leases in one transaction: all is on the disk when it returns, or nothing is done.
  ///
  /// - Throws: the errors of ``publish(_:of:)``; `unknownLease` if one lease was lost.
  func publish(
    _ messages: [Message], settling leases: LeaseSettlements, of application: DirectoryEntry
  ) async throws -> [Timetoken] {
    try await admit(messages, of: application) { [engine] in
      if engine.isReplicated { return try await publishThenSettle(messages, leases) }
      return try await engine.write { db in
        let places = try engine.publish(messages, in: db)
        try engine.acknowledge(leases.acknowledged, in: db)
        try engine.release(leases.released, in: db)
        try engine.reject(
          leases.rejected, reason: LeaseSettlements.rejectionReason, in: db)
        return places
      }
    }
  }

  /// What a home that is one of several can do: its leases are at their owner, and no transaction reaches both.
  ///
  /// A lease that was lost before is refused, and nothing is published. A failure between the two steps leaves the
  /// messages published, and their work is delivered again: deduplication ids make that harmless.
  private func publishThenSettle(
    _ messages: [Message], _ leases: LeaseSettlements
  ) async throws -> [Timetoken] {
    let tokens = leases.acknowledged + leases.released + leases.rejected
    if !tokens.isEmpty {
      try await engine.extend(tokens, by: min(LeaseService.leaseTime, engine.longestLease))
    }
    let places = messages.isEmpty ? [] : try await engine.publish(messages)
    try await engine.acknowledge(leases.acknowledged)
    try await engine.release(leases.released)
    try await engine.reject(leases.rejected, reason: LeaseSettlements.rejectionReason)
    return places
  }

  /// Runs `body` when the messages have a place before the commit queue, and counts them.
  private func admit(
    _ messages: [Message], of application: DirectoryEntry,
    _ body: () async throws -> [Timetoken]
  ) async throws -> [Timetoken] {
    let byteCount = messages.reduce(0) { $0 + $1.byteCount }
    // Otherwise each would wait until it is clear that the brokers do not answer, in the place of another one.
    guard engine.isCurrent else { throw PublishingRefusal.cutOff }
    guard operations.admission.take(byteCount, of: application.id) else {
      operations.metrics?.count(.admission)
      throw PublishingRefusal.busy
    }
    defer { operations.admission.release(byteCount, of: application.id) }
    for channel in Set(messages.map(\.channel)) {
      guard try await quotas.take(channel, of: application, in: engine) else {
        operations.metrics?.count(.quota)
        throw PublishingRefusal.channels
      }
    }
    guard quotas.take(messages, of: application) else {
      operations.metrics?.count(.quota)
      throw PublishingRefusal.quota
    }
    let places = try await body()
    for message in messages { operations.metrics?.countPublished(byteCount: message.payload.count) }
    return places
  }
}
