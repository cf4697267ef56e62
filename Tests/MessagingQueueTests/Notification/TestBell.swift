import MessagingQueue
import Synchronization

/// A notifier without files, for any number of listeners; it can be made to refuse.
final class TestBell: NotificationTransport {
  private struct State {
    var listeners: [TestListener] = []
    var refuses = false
    var listenCount = 0
  }

  private let state = Mutex(State())

  /// Whether ringing and listening throw.
  var refuses: Bool {
    get { state.withLock { $0.refuses } }
    set { state.withLock { $0.refuses = newValue } }
  }

  /// How many listen.
  var listenerCount: Int { state.withLock { $0.listeners.count } }

  /// How often somebody tried to listen.
  var listenCount: Int { state.withLock { $0.listenCount } }

  func notify() throws(NotificationError) {
    if refuses { throw NotificationError("refused") }
    for listener in state.withLock({ $0.listeners }) { listener.post(.changed) }
  }

  func listen() throws(NotificationError) -> any NotificationListener {
    let listener = TestListener()
    let refuses = state.withLock { state in
      state.listenCount += 1
      if !state.refuses { state.listeners.append(listener) }
      return state.refuses
    }
    if refuses { throw NotificationError("refused") }
    return listener
  }

  /// What its listeners are told next.
  func post(_ event: BellEvent) {
    for listener in state.withLock({ $0.listeners }) { listener.post(event) }
  }
}
