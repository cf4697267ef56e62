import FileLayer
import MessagingQueue
import Synchronization
import SystemPackage

/// A transport in memory, for any number of listeners; it can refuse on request.
final class TestTransport: NotificationTransport {
  private struct State {
    var listeners: [TestListener] = []
    var refuses = false
    var listenCount = 0
  }

  private let state = Mutex(State())

  /// Whether notify() and listen() throw.
  var refuses: Bool {
    get { state.withLock { $0.refuses } }
    set { state.withLock { $0.refuses = newValue } }
  }

  /// The number of listeners.
  var listenerCount: Int { state.withLock { $0.listeners.count } }

  /// How often listen() was called.
  var listenCount: Int { state.withLock { $0.listenCount } }

  func notify() throws(FileError) {
    if refuses { throw FileError(.write, "/", .noSpace) }
    for listener in state.withLock({ $0.listeners }) { listener.post(.changed) }
  }

  func listen() throws(FileError) -> any NotificationListener {
    let listener = TestListener()
    let refuses = state.withLock { state in
      state.listenCount += 1
      if !state.refuses { state.listeners.append(listener) }
      return state.refuses
    }
    if refuses { throw FileError(.write, "/", .noSpace) }
    return listener
  }

  /// Posts an event to all listeners.
  func post(_ event: NotificationEvent) {
    for listener in state.withLock({ $0.listeners }) { listener.post(event) }
  }
}
