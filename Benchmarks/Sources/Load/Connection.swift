import CLoadSystem
import Glibc

/// A connection to a server on this machine, without a call that blocks.
final class Connection {
  enum Event {
    /// The connection is ready for requests.
    case connected
    case answered(Answer)
    case lost
  }

  let descriptor: Int32
  private let service: Service
  private let tls: TLSConnection?
  private var isConnected = false
  /// The steps of the greeting that are not done.
  private var greeting: ArraySlice<Service.GreetingStep>
  private var input: ArraySlice<UInt8> = []

  /// Begins to connect.
  ///
  /// - Throws: if the system has no more descriptors.
  init(_ service: Service, port: UInt16, tls: TLSClient? = nil) throws {
    self.service = service
    greeting = service.greeting[...]
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_NONBLOCK, 0)
    guard descriptor >= 0 else { throw LoadError("socket: \(String(cString: strerror(errno)))") }
    self.tls = try tls?.connection(on: descriptor)
    var on: Int32 = 1
    setsockopt(
      descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
    // A refusal is reported by the descriptor.
    _ = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }

  deinit {
    close(descriptor)
  }

  /// Sends a request; a socket's buffer has room for it.
  ///
  /// - Returns: false if the connection is lost.
  func send(_ request: [UInt8]) -> Bool {
    let count =
      tls?.write(request)
      ?? Glibc.send(descriptor, request, request.count, Int32(MSG_NOSIGNAL))
    return count == request.count
  }

  /// What has happened; nil for nothing yet.
  ///
  /// Several answers can come together, where requests are under way together or a server sends by itself. Then this
  /// must be called until it returns nil.
  ///
  /// - Parameter buffer: room for what is read.
  /// - Throws: if the server refuses the greeting.
  func event(_ buffer: UnsafeMutableRawBufferPointer) throws -> Event? {
    guard isConnected else { return finishConnecting() }
    while true {
      if let answer = service.answer(input) {
        input.removeFirst(answer.byteCount)
        guard let step = greeting.first else { return .answered(answer) }
        guard answer.contains(step.answer) else {
          throw LoadError("refused: \(answer.description)")
        }
        greeting.removeFirst()
        guard sendGreeting() else { return .lost }
        if greeting.isEmpty { return .connected }
        continue
      }
      let count =
        tls?.read(into: buffer) ?? Glibc.recv(descriptor, buffer.baseAddress, buffer.count, 0)
      if count < 0, errno == EAGAIN { return nil }
      guard count > 0 else { return .lost }
      input += buffer.prefix(count)
    }
  }

  private func finishConnecting() -> Event? {
    var error: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size)
    guard error == 0 else { return .lost }
    isConnected = true
    if let tls, !tls.shakeHands(on: descriptor) { return .lost }
    guard sendGreeting() else { return .lost }
    return greeting.isEmpty ? .connected : nil
  }

  /// Sends the request of the next step; false if the connection is lost.
  private func sendGreeting() -> Bool {
    guard let request = greeting.first?.request, !request.isEmpty else { return true }
    return send(request)
  }
}

/// The connections under way, as a client that waits for many of them has them: epoll(7).
struct Poller {
  private let descriptor = epoll_create1(0)

  /// Reports a connection, by a number, when it is connected and when there is something to read.
  ///
  /// Edge-triggered, so that a connection that was connected is not reported without end. The answer to a single
  /// request fits into the buffer of one read.
  func add(_ connection: Connection, as number: Int) {
    var event = epoll_event()
    event.events = EPOLLIN.rawValue | EPOLLOUT.rawValue | EPOLLET.rawValue
    event.data.u64 = UInt64(number)
    epoll_ctl(descriptor, EPOLL_CTL_ADD, connection.descriptor, &event)
  }

  /// Waits for the next events, at most some time.
  func wait(milliseconds: Int32) -> [Int] {
    let room = 256
    return withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: room) { events in
      let count = epoll_wait(descriptor, events.baseAddress, Int32(room), milliseconds)
      return (0..<max(Int(count), 0)).map { Int(events[$0].data.u64) }
    }
  }
}
