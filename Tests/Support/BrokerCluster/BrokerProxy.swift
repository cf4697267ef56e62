import Foundation
import Synchronization
import TestSupport

/// Stands between a node and a broker: a network that loses connections, takes bytes and delivers none, or does
/// something else with single messages.
public final class BrokerProxy: Sendable {
  /// Says what goes on in the place of a message.
  public typealias Judge = @Sendable (WireMessage) -> [WireMessage]

  private let core: Core

  /// Begins to take connections to the port of a broker.
  ///
  /// - Parameter judge: default: nil, all bytes go on as they come.
  public init(to port: UInt16, judge: Judge? = nil) throws {
    core = Core(try LoopbackSocket(), target: port, judge)
    let core = core
    Thread { core.acceptAll() }.start()
  }

  deinit {
    core.state.withLock { $0.isClosed = true }
    core.cut()
  }

  /// Where nodes connect.
  public var address: String { "nats://127.0.0.1:\(core.listener.port)" }

  /// Takes no bytes from now on, or goes on; connections stay open.
  public func hold(_ isHolding: Bool) { core.state.withLock { $0.isHolding = isHolding } }

  /// Ends all connections.
  public func cut() { core.cut() }

  /// Keeps all bytes of both directions from now on.
  public func record() { core.state.withLock { $0.recorded = $0.recorded ?? [] } }

  /// What was recorded.
  public var recorded: [UInt8] { core.state.withLock { $0.recorded ?? [] } }
}

private final class Core: Sendable {
  struct State: Sendable {
    var isHolding = false
    var isClosed = false
    var descriptors: Set<Int32> = []
    var recorded: [UInt8]?
  }

  let listener: LoopbackSocket
  let target: UInt16
  let judge: BrokerProxy.Judge?
  let state = Mutex(State())

  init(_ listener: LoopbackSocket, target: UInt16, _ judge: BrokerProxy.Judge?) {
    self.listener = listener
    self.target = target
    self.judge = judge
  }

  func cut() {
    state.withLock { state in
      for descriptor in state.descriptors { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }
  }

  func acceptAll() {
    while !state.withLock({ $0.isClosed }) {
      var waiting = pollfd(fd: listener.descriptor, events: Int16(POLLIN), revents: 0)
      guard poll(&waiting, 1, 50) == 1 else { continue }
      let node = accept(listener.descriptor, nil, nil)
      guard node >= 0 else { continue }
      Thread { self.relay(node) }.start()
    }
  }

  /// Moves bytes both ways until one side ends.
  private func relay(_ node: Int32) {
    defer { close(node) }
    guard let broker = try? LoopbackSocket(connectedTo: target) else { return }
    state.withLock { $0.descriptors.formUnion([node, broker.descriptor]) }
    defer { state.withLock { $0.descriptors.subtract([node, broker.descriptor]) } }
    var piece = [UInt8](repeating: 0, count: 65_536)
    var parsers = [WireParser(.toBroker), WireParser(.toNode)]
    while !state.withLock({ $0.isClosed }) {
      if state.withLock({ $0.isHolding }) {
        // A loop that looks, as it also looks at its sockets.
        usleep(20_000)
        continue
      }
      var sides = [node, broker.descriptor].map {
        pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
      }
      guard poll(&sides, 2, 50) >= 0 else { return }
      for (index, side) in sides.enumerated() where side.revents != 0 {
        let count = recv(side.fd, &piece, piece.count, 0)
        guard count > 0 else { return }
        var bytes = Array(piece[..<count])
        state.withLock { $0.recorded?.append(contentsOf: bytes) }
        if let judge { bytes = parsers[index].take(bytes).flatMap(judge).flatMap(\.bytes) }
        guard Self.send(bytes, to: sides[1 - index].fd) else { return }
      }
    }
  }

  private static func send(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let step = bytes[sent...].withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard step > 0 else { return false }
      sent += step
    }
    return true
  }
}
