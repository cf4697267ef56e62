/// What a receiver does about deliveries, with its arguments.
package enum Settlement: Sendable {
  case acknowledgement
  case release(after: Duration, reason: String?, countsAttempt: Bool)
  case rejection(reason: String)
  case `extension`(by: Duration)

  /// The tokens for which a settlement had another outcome.
  package struct Outcome: Sendable {
    /// Tokens that settle nothing.
    package var unknown: [LeaseToken] = []
    /// Tokens of a release whose messages became dead letters.
    package var deadLettered: [LeaseToken] = []

    package init(unknown: [LeaseToken] = [], deadLettered: [LeaseToken] = []) {
      self.unknown = unknown
      self.deadLettered = deadLettered
    }

    /// - Throws: `unknownLease` if tokens settle nothing; all others are settled.
    func deadLettered(
      of tokens: [LeaseToken], _ settlement: Settlement
    ) throws(EngineError) -> [LeaseToken] {
      if unknown.isEmpty { return deadLettered }
      throw EngineError(
        .unknownLease,
        "\(settlement.operation): \(unknown.count) of \(tokens.count) deliveries were no longer "
          + "leased to you",
        hint: "take a longer lease, or settle earlier", unknownLeases: unknown,
        deadLettered: deadLettered)
    }
  }

  /// The name of the operation, for errors.
  package var operation: String {
    switch self {
    case .acknowledgement: "acknowledging"
    case .release: "releasing"
    case .rejection: "rejecting"
    case .extension: "extending"
    }
  }

  /// Throws `invalidArgument` for an argument that is out of range.
  func check() throws(EngineError) {
    switch self {
    case .acknowledgement: break
    case .release(let delay, let reason, _):
      try EngineError.requireArgument(
        delay >= .zero && delay <= EngineConfiguration.maximumLeaseDuration,
        "the delay is \(delay)", hint: "use a delay from 0 to 366 days")
      if let reason { try Self.check(reason: reason) }
    case .rejection(let reason): try Self.check(reason: reason)
    case .extension(let lease): try Self.check(lease: lease)
    }
  }

  static func check(lease: Duration) throws(EngineError) {
    try EngineError.requireArgument(
      lease > .zero && lease <= EngineConfiguration.maximumLeaseDuration,
      "the lease is \(lease)", hint: "use a lease above 0 and at most 366 days")
  }

  private static func check(reason: String) throws(EngineError) {
    let most = EngineConfiguration.maximumReasonByteCount
    try EngineError.requireArgument(
      (1...most).contains(reason.utf8.count), "the reason has \(reason.utf8.count) bytes",
      hint: "use 1 to \(most) bytes")
  }
}
