internal import MessagingQueue

/// One run of `queue receive`: leases batches, prints each with one write, and settles it by what
/// standard output took.
struct Reception {
  private static let maximumBatchCount = 1000

  let engine: MessagingEngine
  let channel: Channel
  let consumer: Consumer
  let format: MessageFormat
  let lease: Duration
  let acknowledges: Bool
  /// Whether it waits for more when the channel is drained.
  let follows: Bool

  func run(maximumCount: Int?) async throws {
    var remaining = maximumCount ?? .max
    // Without acknowledging, a lease that ends meanwhile would bring the same messages for ever.
    if !acknowledges && !follows { remaining = min(remaining, try await depth()) }
    while remaining > 0 {
      let deliveries = try await engine.receive(
        from: channel, for: consumer, maximumCount: min(remaining, Self.maximumBatchCount),
        lease: lease, waitingUpTo: follows ? .seconds(86_400) : .zero)
      if deliveries.isEmpty && !follows { return }
      try await print(deliveries)
      remaining -= deliveries.count
    }
  }

  private func depth() async throws -> Int {
    try await engine.statistics(of: channel)?.messageCount ?? 0
  }

  private func print(_ deliveries: [Delivery]) async throws {
    let page = OutputPage(deliveries, format: format, withTokens: !acknowledges)
    let outcome = OutputDescriptor.standardOutput.write(page.bytes)
    let takenCount = page.messageCount(within: outcome.takenByteCount)
    if acknowledges {
      try await settle(deliveries[..<takenCount]) { try await engine.acknowledge($0) }
    }
    try await settle(deliveries[takenCount...]) { try await engine.release($0) }
    if let errorNumber = outcome.errorNumber {
      throw OutputDescriptor.failure(errorNumber)
    }
    if takenCount < deliveries.count {
      throw CommandFailure(
        .badData,
        "message \(deliveries[takenCount].timetoken) holds a newline and was released, not printed",
        hint: "give --ndjson")
    }
  }

  /// A reader that is slower than the lease has let others receive the same messages: that is said,
  /// and is no failure.
  private func settle(
    _ deliveries: ArraySlice<Delivery>, by verb: ([LeaseToken]) async throws -> Void
  ) async throws {
    if deliveries.isEmpty { return }
    do {
      try await verb(deliveries.map(\.token))
    } catch let error as EngineError where error.code == .unknownLease {
      StandardError.warn(
        "\(error.unknownLeases.count) messages took longer to print than the lease of \(lease) "
          + "and may be delivered again")
    }
  }
}
