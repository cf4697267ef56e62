import Glibc

/// Subscribers with a long poll each, which they send again after each answer, or with a WebSocket each.
///
/// The commands:
///
/// - `open COUNT`: opens connections until so many subscribers wait; answers how many do.
/// - `wake`: publishes a message; answers the seconds from its request to the last subscriber's answer with it.
/// - `recover`: after the server was killed, waits until each subscriber has connected again by itself and waits from
///   its place on, then wakes all; answers as `wake`.
final class Subscribers {
  private enum State {
    case connecting
    /// The first poll is sent, which is answered with the place to begin from.
    case beginning
    case waiting
    /// The connection was lost or refused.
    case resting
  }

  private struct Subscriber {
    var connection: Connection?
    var state = State.resting
    var cursor: Service.Cursor?
    /// Whether the connection was lost since the last `open` or `recover`.
    var wasLost = false
  }

  /// How many connections are opened together: fewer than a listening socket queues.
  private static let mostConnecting = 400
  /// The seconds until a subscriber connects again: each draws its own, so that they do not come together.
  private static let pause = 0.5...1.5
  /// The number of the publisher's connection.
  private static let publisherNumber = Int.max

  private let service: Service
  private let port: UInt16
  private let tls: TLSClient?
  private let poller = Poller()
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 8)
  private var subscribers: [Subscriber] = []
  private var resting: [(number: Int, until: Double)] = []
  private var waitingCount = 0
  private var lostCount = 0
  private var publisher: Connection?
  private var messageNumber = 0
  private var wokenCount = 0
  private var sent = 0.0

  init(_ service: Service, port: UInt16, tls: TLSClient?) {
    self.service = service
    self.port = port
    self.tls = tls
  }

  deinit {
    buffer.deallocate()
  }

  /// Runs a command and returns its answer.
  func run(_ command: String) throws -> String {
    let words = command.split(separator: " ")
    switch (words.first, words.last.flatMap { Int($0) }) {
    case ("open", let count?):
      try open(count)
      return "\(waitingCount)"
    case ("wake", nil): return "\(try wake())"
    case ("recover", nil):
      try run { lostCount == subscribers.count && waitingCount == subscribers.count }
      forgetLosses()
      return "\(try wake())"
    default: throw LoadError("unknown command: \(command)")
    }
  }

  private func open(_ count: Int) throws {
    while subscribers.count < count {
      subscribers.append(Subscriber())
      try connect(subscribers.count - 1)
      try run { subscribers.count - waitingCount < Self.mostConnecting }
    }
    try run { waitingCount == subscribers.count }
    forgetLosses()
  }

  private func forgetLosses() {
    for number in subscribers.indices { subscribers[number].wasLost = false }
    lostCount = 0
  }

  private func wake() throws -> Double {
    messageNumber += 1
    wokenCount = 0
    let connection = try Connection(service.ofPublisher, port: port, tls: tls)
    publisher = connection
    poller.add(connection, as: Self.publisherNumber)
    try run { publisher == nil && wokenCount == subscribers.count }
    return secondsNow() - sent
  }

  private var mark: String { "wake-\(messageNumber)-" }

  /// Handles what happens until `isDone` says so.
  private func run(_ isDone: () -> Bool) throws {
    while !isDone() {
      for number in poller.wait(milliseconds: 20) {
        try number == Self.publisherNumber ? handlePublisher() : handle(number)
      }
      let now = secondsNow()
      let rested = resting.filter { $0.until <= now }
      resting.removeAll { $0.until <= now }
      for (number, _) in rested { try connect(number) }
    }
  }

  private func connect(_ number: Int) throws {
    let connection = try Connection(service, port: port, tls: tls)
    subscribers[number].connection = connection
    subscribers[number].state = .connecting
    poller.add(connection, as: number)
  }

  private func handle(_ number: Int) throws {
    switch try subscribers[number].connection?.event(buffer) {
    case .connected: waitForMessage(number)
    case .answered(let answer) where answer.isSuccess:
      if case .waiting = subscribers[number].state { waitingCount -= 1 }
      subscribers[number].cursor = service.cursor(of: answer)
      if wokenCount < subscribers.count, answer.contains(mark) { wokenCount += 1 }
      waitForMessage(number)
    case .answered, .lost: rest(number)
    case nil: break
    }
  }

  private func waitForMessage(_ number: Int) {
    let subscriber = subscribers[number]
    if let request = service.poll(after: subscriber.cursor, by: number) {
      guard subscriber.connection?.send(request) == true else { return rest(number) }
    }
    if service.hasHandshake, subscriber.cursor == nil {
      subscribers[number].state = .beginning
    } else {
      subscribers[number].state = .waiting
      waitingCount += 1
    }
  }

  private func rest(_ number: Int) {
    if case .waiting = subscribers[number].state { waitingCount -= 1 }
    if !subscribers[number].wasLost { lostCount += 1 }
    subscribers[number].wasLost = true
    subscribers[number].state = .resting
    subscribers[number].connection = nil
    resting.append((number, until: secondsNow() + .random(in: Self.pause)))
  }

  /// Publishes until the message is acknowledged: a server that has just started can refuse it.
  private func handlePublisher() throws {
    switch try publisher?.event(buffer) {
    case .answered(let answer) where answer.isSuccess: publisher = nil
    case .connected, .answered:
      sent = secondsNow()
      guard publisher?.send(service.publish(mark, by: subscribers.count)) == true else {
        throw LoadError("the publisher's connection was lost")
      }
    case .lost: throw LoadError("the publisher's connection was lost")
    case nil: break
    }
  }
}
