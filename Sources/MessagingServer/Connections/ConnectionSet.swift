internal import NIOCore
internal import Synchronization

/// The open connections of a server: their number is bounded, and a stop reaches each of them.
final class ConnectionSet: Sendable {
  /// Asks a connection to end after the answer that it is about to give.
  struct Drain: Sendable {}
  /// Asks a connection to end unless it has a request.
  struct EndIdle: Sendable {}

  private struct State {
    var channels: [ObjectIdentifier: any Channel] = [:]
    /// By address, but for programs of this machine: a proxy is one.
    var counts: [String: Int] = [:]
    var isDraining = false
  }

  private let state = Mutex(State())
  private let maximumCount: Int
  private let maximumCountPerAddress: Int
  /// What the connections hold.
  let memory: MemoryLedger

  init(
    maximumCount: Int, maximumCountPerAddress: Int = .max, memory: MemoryLedger = MemoryLedger()
  ) {
    self.maximumCount = maximumCount
    self.maximumCountPerAddress = maximumCountPerAddress
    self.memory = memory
  }

  /// How many connections are open.
  var count: Int { state.withLock { $0.channels.count } }

  /// Takes a new connection until it closes; false if it must be closed, because there are too many, in all or from its
  /// address, or the server stops.
  func add(_ channel: any Channel, from address: SocketAddress?) -> Bool {
    let id = ObjectIdentifier(channel)
    let source = address.flatMap { $0.isLoopback ? nil : LoginSource($0).text }
    let isTaken = state.withLock { state in
      guard !state.isDraining, state.channels.count < maximumCount else { return false }
      if let source {
        guard state.counts[source, default: 0] < maximumCountPerAddress else { return false }
        state.counts[source, default: 0] += 1
      }
      state.channels[id] = channel
      return true
    }
    if isTaken {
      channel.closeFuture.whenComplete { [weak self] _ in self?.remove(id, source) }
    }
    return isTaken
  }

  private func remove(_ id: ObjectIdentifier, _ source: String?) {
    state.withLock { state in
      state.channels[id] = nil
      guard let source, let count = state.counts[source] else { return }
      state.counts[source] = count > 1 ? count - 1 : nil
    }
  }

  /// Takes no more connections, and ends each after its next answer.
  ///
  /// A connection without a request stays open: its client's next request is possibly on its way.
  func drain() {
    state.withLock { $0.isDraining = true }
    tell(Drain())
  }

  /// Ends the connections without a request.
  func endIdle() { tell(EndIdle()) }

  private func tell(_ event: some Sendable) {
    for channel in state.withLock({ Array($0.channels.values) }) {
      channel.pipeline.fireUserInboundEventTriggered(event)
    }
  }

  /// Closes what is still open.
  func closeAll() {
    for channel in state.withLock({ Array($0.channels.values) }) { channel.close(promise: nil) }
  }
}
