internal import FileLayer
internal import Glibc
package import Logging
internal import MessagingQueueLifecycle
internal import Synchronization
internal import SystemPackage

/// What an operator sees of a server, and what the service manager is told: state, metrics and logs.
package final class ServerOperations: Sendable {
  /// Whether the server can do its work, and if not, why.
  enum Health: String, Sendable, CaseIterable {
    case ready
    /// Its vault is locked.
    case sealed
    /// Its disk cannot be written.
    case disk
    /// It does not reach the brokers of its cluster.
    case cutOff = "cut-off"
    /// Its clients make it hold nearly as much memory as they can.
    case memory
    case stopping
  }

  private struct State {
    var isSealed = true
    var isStopping = false
  }

  let metrics: ServerMetrics?
  let registry: PrometheusRegistry?
  let admission: AdmissionGate
  let disk = DiskProbe()
  /// Nil if the service manager expects no signs of life.
  let watchdog: Watchdog?
  /// The server's log.
  let logger: Logger
  private let accessLog: AccessLog
  private let audit: AuditLog
  let notify: @Sendable (String) -> Void
  private let state = Mutex(State())
  private let connectionNumber = Atomic<UInt64>(0)

  /// - Parameters:
  ///   - registry: takes the server's metrics; nil if no one reads them.
  ///   - accessLog: default: lines of the level debug in `logger`.
  ///   - logger: takes the log, the audit log and the default access log. Default: labelled `datavault.server`.
  ///   - environment: what the service manager expects. Default: nothing.
  ///   - notify: takes the reports to the service manager. Default: sends them.
  package convenience init(
    registry: PrometheusRegistry? = nil, accessLog: AccessLog? = nil,
    logger: Logger = Logger(label: "datavault.server"), environment: [String: String] = [:],
    notify: @escaping @Sendable (String) -> Void = ServiceManager.notify
  ) {
    self.init(
      registry: registry, accessLog: accessLog, logger: logger, admission: AdmissionGate(),
      watchdog: Watchdog(environment, processID: getpid()), notify: notify)
  }

  init(
    registry: PrometheusRegistry?, accessLog: AccessLog?, logger: Logger,
    admission: AdmissionGate, watchdog: Watchdog?, notify: @escaping @Sendable (String) -> Void
  ) {
    self.registry = registry
    metrics = registry.flatMap { ServerMetrics($0) }
    self.logger = logger
    self.accessLog = accessLog ?? AccessLog(logger)
    audit = AuditLog(logger)
    self.admission = admission
    self.watchdog = watchdog
    self.notify = notify
  }

  // MARK: - Requests

  /// A number for a new connection, from 1.
  func nextConnectionNumber() -> UInt64 {
    connectionNumber.wrappingAdd(1, ordering: .relaxed).newValue
  }

  /// Counts and logs a request that has ended.
  func didEnd(_ record: RequestRecord) {
    metrics?.count(record)
    accessLog.write(record)
    audit.write(record)
  }

  /// Notes that changes of access by other processes are in use.
  func didTakeChanges(count: Int) { audit.write(.takeChanges, count: count) }

  // MARK: - States

  /// What `/health/ready` says.
  var health: Health {
    let state = state.withLock(\.self)
    if state.isStopping { return .stopping }
    if state.isSealed { return .sealed }
    return disk.isWritable() ? .ready : .disk
  }

  /// Whether the vault is locked.
  var isSealed: Bool { state.withLock(\.isSealed) }

  /// The server listens.
  func didStart() {
    audit.write(.start)
    notify("READY=1\nSTATUS=\(status)")
  }

  /// The vault was unlocked, and requests reach the messages.
  func didUnseal() { setSealed(false, .unlock) }

  /// The vault was locked.
  func didSeal() { setSealed(true, .lock) }

  private func setSealed(_ isSealed: Bool, _ act: AuditLog.Act) {
    let hasChanged = state.withLock { state in
      defer { state.isSealed = isSealed }
      return state.isSealed != isSealed && !state.isStopping
    }
    guard hasChanged else { return }
    audit.write(act)
    notify("STATUS=\(status)")
  }

  /// The server takes no more work.
  ///
  /// - Parameter error: why it stops by itself; nil if it was told to.
  func willStop(_ error: (any Error)? = nil) {
    let hasStopped = state.withLock { state in
      defer { state.isStopping = true }
      return state.isStopping
    }
    if hasStopped { return }
    audit.write(.stop, error: error)
    notify("STOPPING=1\nSTATUS=finishing the requests under way")
  }

  private var status: String {
    isSealed ? "sealed: run datavault unlock messaging" : "serving"
  }

  /// Reads the certificates again, and opens the file of the access log again.
  ///
  /// A certificate that is not valid changes nothing: the audit log says so.
  func reload(_ identities: [TLSIdentity]) async {
    notify(ServiceManager.reloading)
    for identity in identities {
      do {
        try await onBlockingThread("datavault.certificate") { () throws(ServerError) in
          try identity.reload()
        }
        audit.write(.reloadCertificate)
      } catch {
        audit.write(.reloadCertificate, error: error)
      }
    }
    do {
      try await accessLog.reopen()
    } catch {
      audit.write(.reopenLog, error: error)
    }
    notify("READY=1\nSTATUS=\(status)")
  }
}
