package import Logging
package import Replication

/// How a node works.
package struct NodeConfiguration: Sendable {
  /// The longest that a broker of the cluster can keep a record without a sync.
  ///
  /// Default: 5 minutes, that of NATS 2.9.
  ///
  /// With `sync: always` on all brokers it is zero: then nothing that was read is ever undone.
  package var syncInterval: Duration = .seconds(300)
  /// When a node becomes the owner of the leases.
  package var ownership = Ownership.Limits()
  /// How records are appended.
  package var relay = Relay.Limits()
  /// How long publications gather that no caller waits for, so that they are appended and applied together.
  ///
  /// Default: 20 ms.
  ///
  /// What a caller waits for takes them with it.
  package var gatheringTime: Duration = .milliseconds(20)
  /// What the owner trims, and whom it expels.
  package var trim = TrimPlan.Limits()
  /// How long a read waits for the next record: less than half of ``longestBlindness``, because a node knows no more of
  /// the log than what it was when the last read began.
  ///
  /// Default: 250 ms.
  package var readWait: Duration = .milliseconds(250)
  /// How long a receive that found nothing waits before it asks again.
  ///
  /// Default: 1 s.
  package var receiveInterval: Duration = .seconds(1)
  /// How long a caller waits until what it wrote is read back.
  ///
  /// Default: 10 s.
  ///
  /// After that it is told that the outcome is unknown: it is in the outbox, and takes effect when it can.
  package var patience: Duration = .seconds(10)
  /// How long a node waits for a reply of the owner of the leases.
  ///
  /// Default: 5 s.
  ///
  /// A worker at another node can settle in this time if a reply is lost, as the node asks again.
  package var requestPatience: Duration = .seconds(5)
  /// How many records a member's safe position moves before it says so.
  ///
  /// Default: 1,000.
  package var reportStep: UInt64 = 1_000
  /// How long it waits at most before it says so.
  ///
  /// Default: 30 s.
  package var reportInterval: Duration = .seconds(30)
  /// How old the last read of the log can be for a node that decides about access.
  ///
  /// Default: 1 s.
  package var longestBlindness: Duration = .seconds(1)
  /// The tables of a server beside the engine's, which `rows` records can change.
  ///
  /// Default: none.
  package var serverTables: Set<String> = []
  /// Default: no logs.
  package var logger = Logger(label: "datavault.replication") { _ in SwiftLogNoOpLogHandler() }

  package init() {}
}
