internal import AccessControl
internal import Synchronization

/// Decides which operations can join the commit queue: it bounds the bytes and the operations that are not yet
/// committed, and an application that floods the server leaves room for the others.
///
/// One half of the limits is shared. An application can have as much of it as all that are active can have at the same
/// time. The other half is for quiet applications: one that has little in flight is admitted as long as it is not full.
struct Admission: Sendable {
  /// What can be in flight before the commit queue, of all applications together.
  struct Limits: Sendable {
    /// Default: 64 MiB.
    var byteCount = 64 << 20
    /// Default: 8192.
    var operationCount = 8192
    /// What a quiet application has in flight at most: two of the largest messages.
    ///
    /// Default: 64 KiB.
    var quietByteCount = 64 << 10
    /// Default: 8.
    var quietOperationCount = 8
  }

  private struct Load: Sendable {
    var byteCount = 0
    var operationCount = 0

    func with(_ byteCount: Int) -> Load {
      Load(byteCount: self.byteCount + byteCount, operationCount: operationCount + 1)
    }

    mutating func remove(_ byteCount: Int) {
      self.byteCount -= byteCount
      operationCount -= 1
    }

    func fits(_ byteCount: Int, _ operationCount: Int) -> Bool {
      self.byteCount <= byteCount && self.operationCount <= operationCount
    }
  }

  let limits: Limits
  private var total = Load()
  /// The applications that have something in flight.
  private var loads: [ApplicationID: Load] = [:]

  init(_ limits: Limits = Limits()) { self.limits = limits }

  /// The bytes in flight, of all applications.
  var byteCount: Int { total.byteCount }
  /// The operations in flight, of all applications.
  var operationCount: Int { total.operationCount }
  /// The applications that have something in flight.
  var activeCount: Int { loads.count }

  /// Admits an operation that will write this many bytes; false if it must be refused for now.
  mutating func take(_ byteCount: Int, of application: ApplicationID) -> Bool {
    let load = (loads[application] ?? Load()).with(byteCount)
    let total = total.with(byteCount)
    guard
      isQuiet(load) && total.fits(limits.byteCount, limits.operationCount)
        || hasShare(load, of: total, activeCount: loads.count + (loads[application] == nil ? 1 : 0))
    else { return false }
    self.total = total
    loads[application] = load
    return true
  }

  /// Ends an operation that was admitted with this many bytes.
  mutating func release(_ byteCount: Int, of application: ApplicationID) {
    guard var load = loads[application] else {
      preconditionFailure("an operation was released that was not admitted")
    }
    load.remove(byteCount)
    total.remove(byteCount)
    loads[application] = load.operationCount == 0 ? nil : load
  }

  private func isQuiet(_ load: Load) -> Bool {
    load.fits(limits.quietByteCount, limits.quietOperationCount)
  }

  /// Whether the shared half has room, and the application no more of it than its share.
  private func hasShare(_ load: Load, of total: Load, activeCount: Int) -> Bool {
    total.fits(limits.byteCount / 2, limits.operationCount / 2)
      && load.fits(
        limits.byteCount / 2 / activeCount, limits.operationCount / 2 / activeCount)
  }
}

/// The one ``Admission`` of a server, for all its threads.
final class AdmissionGate: Sendable {
  private let admission: Mutex<Admission>

  init(_ limits: Admission.Limits = Admission.Limits()) { admission = Mutex(Admission(limits)) }

  /// The operations in flight.
  var operationCount: Int { admission.withLock { $0.operationCount } }

  /// Admits an operation; false if its caller must be told to try again later.
  func take(_ byteCount: Int, of application: ApplicationID) -> Bool {
    admission.withLock { $0.take(byteCount, of: application) }
  }

  /// Ends an operation that was admitted, whatever became of it.
  func release(_ byteCount: Int, of application: ApplicationID) {
    admission.withLock { $0.release(byteCount, of: application) }
  }
}
