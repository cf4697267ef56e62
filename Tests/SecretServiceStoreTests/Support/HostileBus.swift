import Foundation
import Glibc
import SystemPackage
import TestSupport

/// A session bus with a Secret Service that answers each call as the test demands, unlike any real
/// service.
///
/// https://dbus.freedesktop.org/doc/dbus-specification.html#message-protocol-messages
final class HostileBus: @unchecked Sendable {
  // Sendable: the lock protects all mutable state.

  /// One call of the store.
  struct Call {
    let member: String
    let body: [UInt8]
    /// The number of earlier calls of the same method, over all connections.
    let earlierCount: Int
    /// Whether it is the first call over its connection.
    let isFirst: Bool

    /// Whether the call looks up an alias that does not exist.
    var isIntroduction: Bool { member == "ReadAlias" && !mentions("default") }

    func mentions(_ text: String) -> Bool { String(decoding: body, as: UTF8.self).contains(text) }
  }

  enum Answer {
    case values(BusBody)
    case error(String, String)
    /// No answer.
    case silence
    /// The bus closes the connection.
    case hangUp
    /// Bytes that are not a message.
    case bytes([UInt8])
    /// No answer, and the bus reads no more.
    case stopsReading
    /// An answer, after which the bus reads no more.
    case lastValues(BusBody)
  }

  typealias Service = @Sendable (Call) -> Answer

  private let folder = ScratchFolder()
  var address: String { "unix:path=\(folder("bus"))" }

  private let service: Service
  private let listener: Int32
  private let lock = NSLock()
  private let connections = Connections()
  private var counts: [String: Int] = [:]

  init(_ service: @escaping Service) {
    self.service = service
    listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var place = sockaddr_un()
    place.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &place.sun_path) {
      $0.copyBytes(from: folder.path("bus").utf8)
    }
    let result = withUnsafePointer(to: &place) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    precondition(result == 0 && listen(listener, 16) == 0, "no socket: errno \(errno)")
    Thread.detachNewThread { [listener, connections, weak self] in
      // Only this thread closes the socket, because its number could then belong to another bus.
      defer { Glibc.close(listener) }
      while true {
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else { return }
        connections.add(connection)
        Thread.detachNewThread { [weak self] in
          HostileBus.serve(connection) { self }
          connections.close(connection)
        }
      }
    }
  }

  deinit {
    shutdown(listener, Int32(SHUT_RDWR))
    connections.shutDown()
  }

  func count(of member: String) -> Int { lock.withLock { counts[member] ?? 0 } }

  private func answer(_ message: BusInput.Message, isFirst: Bool) -> Answer {
    let member = message.member
    let earlier = lock.withLock {
      counts[member, default: 0] += 1
      return counts[member, default: 1] - 1
    }
    if member == "Hello" { return .values(BusBody().string(":1.1")) }
    return service(
      Call(member: member, body: message.body, earlierCount: earlier, isFirst: isFirst))
  }

  // MARK: One connection

  private static func serve(_ connection: Int32, _ bus: () -> HostileBus?) {
    var input = BusInput(connection)
    guard input.authenticate() else { return }
    var callCount = 0
    while let message = input.message() {
      guard message.isCall else { continue }
      // The very first call goes to the bus itself.
      guard let answer = bus()?.answer(message, isFirst: callCount == 1) else { return }
      callCount += 1
      switch answer {
      case .values(let body): BusInput.send(.reply(to: message.serial, body), connection)
      case .error(let name, let text):
        BusInput.send(.failure(of: message.serial, name, text), connection)
      case .bytes(let bytes): BusInput.send(bytes, connection)
      case .silence: continue
      case .hangUp: return
      case .stopsReading: return wait(for: bus)
      case .lastValues(let body):
        BusInput.send(.reply(to: message.serial, body), connection)
        return wait(for: bus)
      }
    }
  }

  /// Waits until the test has released the bus, which nothing announces.
  private static func wait(for bus: () -> HostileBus?) { while bus() != nil { usleep(20_000) } }
}

/// The sockets of a bus; a closed socket is not used again, because its number can belong to
/// another one.
private final class Connections: @unchecked Sendable {
  private let lock = NSLock()
  private var open: Set<Int32> = []

  func add(_ connection: Int32) { lock.withLock { _ = open.insert(connection) } }

  func close(_ connection: Int32) {
    lock.withLock {
      open.remove(connection)
      Glibc.close(connection)
    }
  }

  func shutDown() {
    lock.withLock { for connection in open { shutdown(connection, Int32(SHUT_RDWR)) } }
  }
}
