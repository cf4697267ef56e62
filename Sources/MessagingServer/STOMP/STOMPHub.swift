internal import AccessControl
internal import Foundation
internal import NIOCore
internal import Synchronization

/// A connection as the threads of others reach it.
final class STOMPHandle: Sendable {
  let application: ApplicationID
  private let eventLoop: any EventLoop
  private let connection: NIOLoopBound<STOMPConnection>
  private let end = Mutex<Date?>(nil)

  init(_ connection: STOMPConnection, application: ApplicationID, on eventLoop: any EventLoop) {
    self.application = application
    self.eventLoop = eventLoop
    self.connection = NIOLoopBound(connection, eventLoop: eventLoop)
  }

  /// When the first of the connection's rights ends; nil for never.
  var nextEnd: Date? {
    get { end.withLock { $0 } }
    set { end.withLock { $0 = newValue } }
  }

  /// Runs `body` on the connection's event loop, in the order of the calls.
  func tell(_ body: @escaping @Sendable (STOMPConnection) -> Void) {
    eventLoop.execute { [connection] in body(connection.value) }
  }
}

/// The connections that have an application.
final class STOMPHub: Sendable {
  private struct State {
    var handles: [ObjectIdentifier: STOMPHandle] = [:]
    var isClosed = false
  }

  private let state = Mutex(State())

  init() {}

  /// Takes a connection; false if the vault was locked in between.
  func add(_ handle: STOMPHandle) -> Bool {
    state.withLock { state in
      if !state.isClosed { state.handles[ObjectIdentifier(handle)] = handle }
      return !state.isClosed
    }
  }

  func remove(_ handle: STOMPHandle) {
    _ = state.withLock { $0.handles.removeValue(forKey: ObjectIdentifier(handle)) }
  }

  /// The connections whose rights can have changed.
  func handles(concernedBy changes: Set<AccessChange>, at now: Date) -> [STOMPHandle] {
    let applications = Set(changes.map(\.application))
    return state.withLock { Array($0.handles.values) }.filter { handle in
      applications.contains(handle.application) || handle.nextEnd.map { $0 <= now } ?? false
    }
  }

  /// Ends all connections, and takes no more.
  func close(_ ending: STOMPEnding) {
    let handles = state.withLock { state in
      state.isClosed = true
      return Array(state.handles.values)
    }
    for handle in handles { handle.tell { $0.end(ending) } }
  }
}
