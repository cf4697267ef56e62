/// What a server says of itself when a client connects.
struct STOMPServer: Sendable, Equatable {
  let heartBeat: STOMPHeartBeat
  /// How long the server knows the ids of publications; nil if it knows none.
  let deduplicationWindow: Duration?
}

/// How a connection ended by the server.
struct STOMPEnding: Sendable, Equatable {
  let error: MessagingClientError
  /// The request that was refused, and changed nothing; nil if the end is not one request's.
  var request: UInt64?
}

/// One connection: what comes in, and what it means.
///
/// It does no input or output, and has no clock. The server does the frames of a connection in their order, and so are
/// its receipts.
struct STOMPSession: Sendable {
  enum Event: Sendable, Equatable {
    case connected(STOMPServer)
    /// The server has given the receipt of a request.
    case receipt(UInt64)
    case message(STOMPFrame, subscription: UInt64)
    /// Nothing more is read.
    case ended(STOMPEnding)

    /// The command of the frame, for the log.
    var kind: String {
      switch self {
      case .connected: "CONNECTED"
      case .receipt: "RECEIPT"
      case .message: "MESSAGE"
      case .ended(let ending): ending.error.code == .invalidAnswer ? "malformed" : "ERROR"
      }
    }

    /// The bytes of a message's body.
    var byteCount: Int { if case .message(let frame, _) = self { frame.body.count } else { 0 } }
  }

  private enum Phase {
    case connecting
    case connected
    case ended
  }

  private let heartBeat: (sends: Duration, wants: Duration)
  private var decoder: STOMPDecoder
  private var phase = Phase.connecting
  /// The requests whose receipts have not come, in their order.
  private var waiting: [(number: UInt64, isSubscription: Bool)] = []

  init(
    sendsHeartBeatEvery sends: Duration, wants: Duration,
    _ limits: STOMPFrameLimits = STOMPFrameLimits()
  ) {
    heartBeat = (sends, wants)
    decoder = STOMPDecoder(limits)
  }

  // MARK: - Requests

  /// The frame that connects, without login and passcode.
  func connectFrame(host: String) -> STOMPFrame {
    STOMPFrame(
      "CONNECT",
      [
        ("accept-version", "1.2"), ("host", host),
        ("heart-beat", STOMPHeartBeat.offer(sends: heartBeat.sends, wants: heartBeat.wants)),
      ])
  }

  /// Names the receipts of the frames of one request; the last one is its answer.
  ///
  /// Each frame has one, so that an ERROR frame names the request whichever of its frames is refused.
  mutating func begin(
    _ frames: [STOMPFrame], _ number: UInt64, isSubscription: Bool = false
  ) -> [STOMPFrame] {
    waiting.append((number, isSubscription))
    return frames.enumerated().map { index, frame in
      var frame = frame
      frame.append("receipt", index == frames.count - 1 ? "\(number)" : "\(number).\(index)")
      return frame
    }
  }

  /// No longer waits for a receipt, which took too long.
  mutating func forget(_ number: UInt64) { waiting.removeAll { $0.number == number } }

  // MARK: - Frames

  /// Takes bytes of the server.
  mutating func receive(_ bytes: [UInt8]) -> [Event] {
    var rest = bytes[...]
    var events: [Event] = []
    while phase != .ended, !rest.isEmpty {
      do throws(STOMPFault) {
        guard let frame = try decoder.next(&rest) else { break }
        if let event = try take(frame) { events.append(event) }
      } catch {
        phase = .ended
        events.append(
          .ended(
            STOMPEnding(
              error: MessagingClientError(
                .invalidAnswer, "the server's answer is no STOMP 1.2: \(error.message)"))))
      }
    }
    return events
  }

  private mutating func take(_ frame: STOMPFrame) throws(STOMPFault) -> Event? {
    switch (frame.command, phase) {
    case ("ERROR", _): return .ended(end(frame))
    case ("CONNECTED", .connecting):
      let server = try server(frame)
      phase = .connected
      return .connected(server)
    case (_, .connecting): throw STOMPFault("the first frame is not CONNECTED")
    case ("MESSAGE", _):
      guard let subscription = frame["subscription"], frame["message-id"] != nil else {
        throw STOMPFault("a message has no subscription, or no message-id")
      }
      return UInt64(subscription).map { .message(frame, subscription: $0) }
    case ("RECEIPT", _):
      guard let id = frame["receipt-id"] else { throw STOMPFault("a receipt has no receipt-id") }
      guard let number = UInt64(id), let index = waiting.firstIndex(where: { $0.number == number })
      else { return nil }
      waiting.remove(at: index)
      return .receipt(number)
    default: throw STOMPFault("the server sent an unknown command")
    }
  }

  private func server(_ frame: STOMPFrame) throws(STOMPFault) -> STOMPServer {
    guard frame["version"] == "1.2" else { throw STOMPFault("the version is not 1.2") }
    guard
      let heartBeat = STOMPHeartBeat(
        frame["heart-beat"], sends: heartBeat.sends, wants: heartBeat.wants)
    else { throw STOMPFault("heart-beat is not two numbers") }
    let window = frame[Deduplication.windowHeader].flatMap { UInt32($0) }
    return STOMPServer(
      heartBeat: heartBeat,
      deduplicationWindow: window.flatMap { $0 > 0 ? .seconds(Int64($0)) : nil })
  }

  private mutating func end(_ frame: STOMPFrame) -> STOMPEnding {
    let error = MessagingClientError(frame, isConnecting: phase == .connecting)
    phase = .ended
    if let id = frame["receipt-id"] {
      let number = UInt64(id.prefix { $0 != "." })
      return STOMPEnding(
        error: error, request: waiting.first { $0.number == number }?.number)
    }
    // Servers do not name a subscription that they refuse. What came before it has its receipt.
    guard [.forbidden, .refused].contains(error.code), let next = waiting.first,
      next.isSubscription
    else { return STOMPEnding(error: error) }
    return STOMPEnding(error: error, request: next.number)
  }
}
