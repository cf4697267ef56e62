internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import FileLayer
internal import JetStreamLog
internal import MessagingQueue
internal import QueueReplication
internal import Replication
internal import VaultCrypto

/// The command `datavaultd cluster status`.
struct ClusterStatusCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show this member, its keys, the others, the owner of the leases, and the brokers.",
    discussion: """
      A position is the number of a record in the log. A member's safe position is the last record that brokers \
      cannot forget: the log is trimmed behind the least of all members. The server can run at the same time.
      """)

  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let found = try await runMember { engine, vault, _ in
      let status = try await MemberStatus.read(engine)
      let cluster = try await NodeVault(vault).cluster()
      let known = cluster.ring.keyNumbers
      let syncSeconds = cluster.settings.syncSeconds
      let log = try await ClusterBrokers.log(of: vault, engine.configuration.logger)
      defer { log.close() }
      do {
        let stream = try await onBlockingThread("datavault.cluster") { try log.status() }
        return ClusterReport(status, known, stream, syncSeconds: syncSeconds, fault: nil)
      } catch let error as LogError {
        return ClusterReport(status, known, nil, syncSeconds: syncSeconds, fault: "\(error)")
      }
    }
    for warning in found.warnings { StandardError.warn(warning) }
    try report.print(found) { found.text }
  }
}

/// The report of `cluster status`.
private struct ClusterReport: Encodable {
  struct Member: Encodable {
    let member: String
    let isThis: Bool
    let isOwner: Bool
    let safePosition: UInt64
  }

  struct Brokers: Encodable {
    let broker: String
    let version: String?
    let leader: String?
    let replicas: Int
    let first: UInt64
    let last: UInt64
    let bytes: UInt64
    let offline: [String]
  }

  struct Keys: Encodable {
    let writing: UInt32
    let oldest: UInt32
    let newest: UInt32
  }

  let position: UInt64
  let outbox: Int
  let keys: Keys
  let members: [Member]
  let brokers: Brokers?
  let warnings: [String]

  init(
    _ status: MemberStatus, _ known: ClosedRange<UInt32>, _ stream: LogStatus?, syncSeconds: Int,
    fault: String?
  ) {
    position = status.position
    outbox = status.outboxCount
    keys = Keys(writing: status.writingKey, oldest: known.lowerBound, newest: known.upperBound)
    members = status.members.map {
      Member(
        member: $0.id.hexadecimal, isThis: $0.id == status.member, isOwner: $0.id == status.owner,
        safePosition: $0.safe)
    }
    brokers = stream.map {
      Brokers(
        broker: $0.broker, version: $0.version, leader: $0.leader, replicas: $0.replicaCount,
        first: $0.first,
        last: $0.last, bytes: $0.byteCount, offline: $0.peers.filter(\.isOffline).map(\.name))
    }
    var warnings = stream?.warnings ?? []
    if syncSeconds > 0 {
      warnings.append(
        "the brokers sync every \(syncSeconds) s: a power cut of most of them takes that much back")
    }
    if let fault { warnings.append("the brokers: \(fault)") }
    self.warnings = warnings
  }

  var text: String {
    var text = """
      position  \(position)\(brokers.map { " of \($0.last)" } ?? "")
      outbox    \(outbox) records
      keys      \(keys.oldest) to \(keys.newest) are known, key \(keys.writing) seals

      """
    if let brokers {
      text += """
        broker    \(brokers.broker)\(brokers.leader.map { ", the stream is led by \($0)" } ?? "")
        version   \(brokers.version ?? "not known")
        stream    records \(brokers.first) to \(brokers.last), \(brokers.bytes) bytes on each of \(brokers.replicas)

        """
    }
    return text
      + table(
        ["MEMBER", "SAFE POSITION", "ROLE"],
        members.map {
          let roles = ($0.isThis ? ["this home"] : []) + ($0.isOwner ? ["owner of the leases"] : [])
          return [$0.member, "\($0.safePosition)", roles.joined(separator: ", ")]
        })
  }
}

/// The command `datavaultd cluster verify`.
struct ClusterVerifyCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Read the whole log at the brokers, and compare it with this home.",
    discussion: """
      It opens each record with the keys of this home, and compares what this home has applied lately with the log. \
      Members compare each other by the digests in the log: one that differs stops with an alarm. Exit code 65 means \
      that a record does not open or differs.
      """)

  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let found = try await runMember { engine, vault, _ in
      let places = try await MemberStatus.places(engine)
      let cluster = try await NodeVault(vault).cluster()
      let seal = RingSeal(cluster.ring, random: .system)
      let log = try await ClusterBrokers.log(of: vault, engine.configuration.logger)
      defer { log.close() }
      var found = VerificationReport(first: 0, last: 0)
      var place: UInt64 = 0
      repeat {
        let batch = try await onBlockingThread("datavault.cluster") { [place] in
          try log.read(at: place, mostBytes: 4 << 20, wait: .milliseconds(500))
        }
        // What comes later is not of this call.
        if found.first == 0 { (found.first, found.last) = (batch.first, batch.last) }
        let entries = batch.entries.filter { $0.sequence > place && $0.sequence <= found.last }
        for entry in entries {
          found.records += 1
          if entry.record.key < cluster.ring.keyNumbers.lowerBound {
            found.skipped += 1
          } else if (try? seal.open(entry.record)) == nil {
            found.unreadable.append(entry.sequence)
          }
          if let own = places[entry.sequence] {
            found.compared += 1
            if own != entry.record.digest { found.differing.append(entry.sequence) }
          }
        }
        place = batch.entries.last.map { max($0.sequence, place) } ?? max(place, batch.first - 1)
      } while place < found.last
      return found
    }
    try report.print(found) { found.text }
    guard found.unreadable.isEmpty, found.differing.isEmpty else {
      throw CommandFailure(
        .badData, "\(found.unreadable.count) records do not open, \(found.differing.count) differ",
        hint: "members skip what does not open; look who else can write to the brokers")
    }
  }
}

/// The report of `cluster verify`.
private struct VerificationReport: Encodable {
  var first: UInt64
  var last: UInt64
  var records = 0
  /// Those that this home has applied lately, and those under keys that were dropped.
  var compared = 0
  var skipped = 0
  var unreadable: [UInt64] = []
  var differing: [UInt64] = []

  init(first: UInt64, last: UInt64) {
    self.first = first
    self.last = last
  }

  var text: String {
    "records \(first) to \(last): read \(records), under dropped keys \(skipped), "
      + "not opened \(unreadable.count), compared \(compared), different here \(differing.count)\n"
  }
}
