internal import AccessControl
internal import Foundation
internal import NIOCore
internal import Synchronization

/// A session as the threads of others reach it.
final class SessionHandle<Session: ClientSession>: Sendable {
  let application: ApplicationID
  private let eventLoop: any EventLoop
  private let session: NIOLoopBound<Session>
  private let end = Mutex<Date?>(nil)

  init(_ session: Session, application: ApplicationID, on eventLoop: any EventLoop) {
    self.application = application
    self.eventLoop = eventLoop
    self.session = NIOLoopBound(session, eventLoop: eventLoop)
  }

  /// When the first of the session's rights ends; nil for never.
  var nextEnd: Date? {
    get { end.withLock { $0 } }
    set { end.withLock { $0 = newValue } }
  }

  /// Runs `body` on the session's event loop, in the order of the calls.
  func tell(_ body: @escaping @Sendable (Session) -> Void) {
    eventLoop.execute { [session] in body(session.value) }
  }
}

/// The sessions of one protocol that have an application, while the vault is open.
final class SessionRegistry<Session: ClientSession>: Sendable {
  typealias Handle = SessionHandle<Session>

  private struct State {
    var handles: [ObjectIdentifier: Handle] = [:]
    var isClosed = false
  }

  private let state = Mutex(State())

  init() {}

  var count: Int { state.withLock { $0.handles.count } }

  /// Takes a session; false if the vault was locked in between.
  func add(_ handle: Handle) -> Bool {
    state.withLock { state in
      if !state.isClosed { state.handles[ObjectIdentifier(handle)] = handle }
      return !state.isClosed
    }
  }

  func remove(_ handle: Handle) {
    _ = state.withLock { $0.handles.removeValue(forKey: ObjectIdentifier(handle)) }
  }

  /// The sessions whose rights can have changed.
  func handles(concernedBy changes: Set<AccessChange>, at now: Date) -> [Handle] {
    let applications = Set(changes.map(\.application))
    return state.withLock { Array($0.handles.values) }.filter { handle in
      applications.contains(handle.application) || handle.nextEnd.map { $0 <= now } ?? false
    }
  }

  /// Tells all sessions the same, and takes no more.
  func close(_ body: @escaping @Sendable (Session) -> Void) {
    let handles = state.withLock { state in
      state.isClosed = true
      return Array(state.handles.values)
    }
    for handle in handles { handle.tell(body) }
  }
}
