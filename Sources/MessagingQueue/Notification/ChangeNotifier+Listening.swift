internal import Dispatch
internal import Foundation
internal import Glibc
internal import Synchronization
internal import SystemPackage

/// The values that the notifier's thread reads from the database; they differ after every commit.
package struct DatabaseProbe: Sendable, Hashable {
  let commitNumber: Int64
  let isLockedOut: Bool

  package init(commitNumber: Int64, isLockedOut: Bool = false) {
    self.commitNumber = commitNumber
    self.isLockedOut = isLockedOut
  }
}

extension ChangeNotifier {
  /// Starts the thread with the first waiter, or wakes it if it sleeps.
  func ensureListening() {
    guard device != nil else { return }
    let (starts, sleeper) = state.withLock { state in
      defer {
        state.hasThread = true
        state.isThreadAsleep = false
      }
      return (!state.hasThread, state.isThreadAsleep ? state.listener : nil)
    }
    sleeper?.interrupt()
    guard starts else { return }
    // The thread holds the notifier only between two waits. So the engine can be released, and the
    // thread then ends.
    let thread = Thread { [weak self] in
      var rounds = Rounds()
      while let wait = self?.prepare(&rounds) {
        let event = wait.listener.wait(upTo: wait.limit)
        guard let self, self.heard(event, &rounds) else { return }
      }
    }
    thread.name = "datavault.notifications"
    thread.start()
  }

  /// The thread's state between two waits.
  struct Rounds {
    var listener: (any NotificationListener)?
    var isPolling = false
    var seen: DatabaseProbe?
  }

  struct Wait {
    let listener: any NotificationListener
    let limit: Duration?
  }

  /// Returns a listener and how long to wait on it; nil after the engine has stopped.
  func prepare(_ rounds: inout Rounds) -> Wait? {
    let listener = rounds.listener ?? listen(&rounds)
    let limit = rounds.isPolling ? intervals.polling : intervals.fallbackCheck
    return state.withLock { state in
      if state.isStopped { return nil }
      state.listener = listener
      return Wait(listener: listener, limit: state.isThreadAsleep ? nil : limit)
    }
  }

  private func listen(_ rounds: inout Rounds) -> any NotificationListener {
    do {
      guard let device else { throw NotificationError("there is no device") }
      rounds.listener = try device.listen()
      rounds.isPolling = false
    } catch {
      rounds.listener = PollingListener()
      rounds.isPolling = true
    }
    let listener = rounds.listener ?? PollingListener()
    // Notifications before this moment are lost, so the waiters read the database again.
    rounds.seen = probe()
    wake(in: nil)
    return listener
  }

  /// Handles the end of a wait; false after the engine has stopped.
  func heard(_ event: NotificationEvent, _ rounds: inout Rounds) -> Bool {
    switch event {
    case .changed:
      wake(in: nil)
    case .lost:
      rounds.listener = nil
    case .interrupted:
      break
    case .timedOut:
      wakeIfDatabaseChanged(&rounds)
      // The system can allow now what it refused before.
      if rounds.isPolling { retryListening(&rounds) }
    }
    return state.withLock { state in
      if event == .timedOut { state.isThreadAsleep = state.waiters.isEmpty }
      return !state.isStopped
    }
  }

  private func wakeIfDatabaseChanged(_ rounds: inout Rounds) {
    guard let now = probe(), now != rounds.seen else { return }
    rounds.seen = now
    wake(in: nil)
  }

  private func retryListening(_ rounds: inout Rounds) {
    guard let listener = try? device?.listen() else { return }
    rounds.listener = listener
    rounds.isPolling = false
    wakeIfDatabaseChanged(&rounds)
  }
}

/// Watches the notification file with inotify(7).
final class InotifyListener: NotificationListener {
  private let events: CInt
  private let interruptionReader: CInt
  private let interruptionWriter: CInt

  /// - Throws: at the limits of inotify (`fs.inotify.max_user_instances`) or of descriptors.
  init(_ path: FilePath) throws(NotificationError) {
    // A pair of sockets instead of a pipe, as it can be made close-on-exec atomically.
    var pair: [CInt] = [-1, -1]
    let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let isPaired = unsafe socketpair(AF_UNIX, kind, 0, &pair) == 0
    (interruptionReader, interruptionWriter) = (pair[0], pair[1])
    events = isPaired ? inotify_init1(CInt(IN_CLOEXEC | IN_NONBLOCK)) : -1
    guard events >= 0 else {
      throw NotificationError("cannot use inotify: \(Errno(rawValue: errno))")
    }
    let mask = IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF
    guard unsafe inotify_add_watch(events, path.string, UInt32(mask)) >= 0 else {
      throw NotificationError("cannot watch \(path): \(Errno(rawValue: errno))")
    }
  }

  deinit {
    for descriptor in [events, interruptionReader, interruptionWriter] where descriptor >= 0 {
      _ = close(descriptor)
    }
  }

  func wait(upTo timeout: Duration?) -> NotificationEvent {
    var descriptors = [events, interruptionReader].map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    let milliseconds = timeout.map { CInt(clamping: $0.roundedUpMilliseconds) } ?? -1
    let count = unsafe poll(&descriptors, 2, milliseconds)
    // A signal ends the wait early; the waiter then looks at the database and waits again.
    if count <= 0 { return .timedOut }
    let isInterrupted = drain(interruptionReader).count > 0
    let mask = Self.union(ofMasksIn: drain(events))
    let isLost = mask & UInt32(IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED) != 0
    if isLost { return .lost }
    return mask == 0 && isInterrupted ? .interrupted : .changed
  }

  func interrupt() {
    // The result does not matter: a full buffer ends the wait too.
    _ = unsafe write(interruptionWriter, [1], 1)
  }

  private func drain(_ descriptor: CInt) -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = unsafe chunk.withUnsafeMutableBytes {
        unsafe read(descriptor, $0.baseAddress, $0.count)
      }
      if count <= 0 { return bytes }
      bytes += chunk[..<count]
    }
  }

  /// The union of the masks of all events.
  ///
  /// `struct inotify_event` is `wd`, `mask`, `cookie`, `len`, four bytes each, and `len` bytes of a
  /// name.
  private static func union(ofMasksIn bytes: [UInt8]) -> UInt32 {
    var mask: UInt32 = 0
    var offset = 0
    while offset + 16 <= bytes.count {
      mask |= number(bytes[(offset + 4)...])
      offset += 16 + Int(number(bytes[(offset + 12)...]))
    }
    return mask
  }

  /// Four bytes in the machine's order.
  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 {
    var number: UInt32 = 0
    unsafe withUnsafeMutableBytes(of: &number) { unsafe $0.copyBytes(from: bytes.prefix(4)) }
    return number
  }
}

extension Duration {
  /// Milliseconds for poll(2), rounded up so that it does not return too early.
  var roundedUpMilliseconds: Int64 {
    let (seconds, attoseconds) = components
    let perMillisecond: Int64 = 1_000_000_000_000_000
    return seconds * 1000 + (attoseconds + perMillisecond - 1) / perMillisecond
  }
}

/// Waits without a transport: its thread reads the database after each wait.
final class PollingListener: NotificationListener {
  private let interruption = DispatchSemaphore(value: 0)

  func wait(upTo timeout: Duration?) -> NotificationEvent {
    let deadline: DispatchTime =
      timeout.map { .now() + .milliseconds(Int(clamping: $0.roundedUpMilliseconds)) }
      ?? .distantFuture
    return interruption.wait(timeout: deadline) == .success ? .interrupted : .timedOut
  }

  func interrupt() {
    interruption.signal()
  }
}
