internal import AccessControl
internal import Foundation
internal import MessagingQueue

/// One connection: what comes in, and what is to be done about it.
///
/// It does no I/O and has no clock.
struct STOMPSession {
  private enum Phase {
    case connecting
    /// Who connects is being found out.
    case authenticating
    case connected
    /// Nothing more is read: the client has disconnected, or an error is on its way.
    case ended
  }

  private let limits: STOMPLimits
  private var decoder: STOMPDecoder
  private var phase = Phase.connecting
  private(set) var version = STOMPVersion.v10
  private var heartBeat = STOMPHeartBeat()
  private var frameStart: UInt64
  /// What came behind CONNECT, until the client is known.
  private var waiting: [UInt8] = []
  private var subscriptions: STOMPSubscriptions
  private var transactions: [String: STOMPTransaction] = [:]

  init(_ limits: STOMPLimits = STOMPLimits(), atNanoseconds now: UInt64) {
    self.limits = limits
    decoder = STOMPDecoder(limits.frames)
    subscriptions = STOMPSubscriptions(limits)
    frameStart = now
  }

  /// What the client makes the session keep, about.
  var byteCount: Int {
    transactions.values.reduce(decoder.byteCount + waiting.count) { $0 + $1.memoryByteCount }
  }

  // MARK: - Frames

  /// Takes bytes of the client.
  mutating func receive(_ bytes: [UInt8], atNanoseconds now: UInt64) -> [Action] {
    heartBeat.didReceive(at: now)
    var rest = bytes[...]
    var actions: [Action] = []
    while case .connecting = phase, !rest.isEmpty { actions += next(&rest, now) }
    // What follows CONNECT waits until the version and the principal are known.
    return actions + receiveConnected(&rest, now)
  }

  private mutating func receiveConnected(
    _ rest: inout ArraySlice<UInt8>, _ now: UInt64
  ) -> [Action] {
    guard case .connected = phase else {
      if case .authenticating = phase { waiting += rest }
      return []
    }
    var actions: [Action] = []
    while case .connected = phase, !rest.isEmpty { actions += next(&rest, now) }
    return actions
  }

  /// Takes the next frame, or all bytes.
  private mutating func next(_ bytes: inout ArraySlice<UInt8>, _ now: UInt64) -> [Action] {
    do throws(STOMPFault) {
      let wasInFrame = decoder.isInFrame
      let frame = try decoder.next(&bytes)
      if frame != nil || !wasInFrame { frameStart = now }
      guard let frame else { return [] }
      do throws(STOMPFault) {
        return try take(frame, now)
      } catch {
        return fail(error.message, frame["receipt"])
      }
    } catch {
      return fail(error.message, nil)
    }
  }

  private mutating func fail(_ message: String, _ receipt: String?, status: Int = 400) -> [Action] {
    phase = .ended
    return [.fail(STOMPEnding(message: message, status: status, receipt: receipt))]
  }

  private mutating func take(_ frame: STOMPFrame, _ now: UInt64) throws(STOMPFault) -> [Action] {
    guard frame.body.isEmpty || frame.command == "SEND" else {
      throw STOMPFault("a \(frame.command.prefix(32)) frame has no body")
    }
    let receipt = frame["receipt"]
    switch (frame.command, phase) {
    case ("CONNECT", .connecting), ("STOMP", .connecting): return connect(frame)
    case (_, .connecting): throw STOMPFault("the first frame is not CONNECT")
    case ("CONNECT", _), ("STOMP", _): throw STOMPFault("the client has connected before")
    case ("SEND", _): return try add(.publish(STOMPPublication(frame)), frame)
    case ("SUBSCRIBE", _):
      return [.subscribe(try subscriptions.add(frame, version), receipt: receipt)]
        + Self.receipt(receipt)
    case ("UNSUBSCRIBE", _):
      let subscription = try subscriptions.remove(frame, version)
      return [.unsubscribe(subscription, subscription.unsettled.map(\.token))]
        + Self.receipt(receipt)
    case ("ACK", _): return try settle(.acknowledge, frame)
    case ("NACK", _) where version > .v10:
      return try settle(frame["requeue"] == "false" ? .reject : .release, frame)
    case ("BEGIN", _): return try begin(frame, now) + Self.receipt(receipt)
    case ("COMMIT", _):
      return [.perform(try endTransaction(frame).operations, receipt: receipt)]
    case ("ABORT", _): return try abort(frame) + Self.receipt(receipt)
    case ("DISCONNECT", _):
      phase = .ended
      return Self.receipt(receipt) + [.close]
    default: throw STOMPFault("the command is not one of version \(version.rawValue)")
    }
  }

  private static func receipt(_ id: String?) -> [Action] { id.map { [.receipt($0)] } ?? [] }

  // MARK: - Connecting

  private mutating func connect(_ frame: STOMPFrame) -> [Action] {
    guard let version = STOMPVersion.newest(of: frame["accept-version"]) else {
      return fail("this server speaks versions 1.0, 1.1 and 1.2", nil, status: 505)
    }
    guard let heartBeat = STOMPHeartBeat(frame["heart-beat"], limits.heartBeatTime) else {
      return fail("heart-beat is not two numbers", nil)
    }
    self.version = version
    self.heartBeat = heartBeat
    phase = .authenticating
    return [
      .authenticate(
        STOMPConnecting(
          host: frame["host"], login: frame["login"], passcode: frame["passcode"]))
    ]
  }

  /// The client is who it says, and what it sent behind CONNECT is read.
  ///
  /// - Parameter name: the connection's name, which no one can guess.
  mutating func connected(_ name: String, atNanoseconds now: UInt64) -> [Action] {
    phase = .connected
    decoder.version = version
    heartBeat.didReceive(at: now)
    var answer = STOMPFrame(
      "CONNECTED",
      [
        ("version", version.rawValue), ("server", "DataVault"), ("session", name),
        (DeduplicationHeader.window, "\(DeduplicationHeader.seconds)"),
      ])
    // Version 1.0 has none.
    if version > .v10 { answer.append("heart-beat", heartBeat.answer(limits.heartBeatTime)) }
    var rest = waiting[...]
    waiting = []
    return [.send(answer)] + receiveConnected(&rest, now)
  }

  // MARK: - Subscriptions

  /// The subscription with this number; nil if it has ended.
  func subscription(_ number: Int) -> STOMPSubscription? {
    if case .connected = phase { subscriptions[number] } else { nil }
  }

  /// Whether a subscription gets the live messages of a channel.
  func hasTopic(_ channel: ChannelName) -> Bool {
    subscriptions.all.contains { $0.destination == .topic(channel) }
  }

  /// Whether who connects is being found out: nothing more is to be read.
  var isAuthenticating: Bool { if case .authenticating = phase { true } else { false } }

  var hasEnded: Bool { if case .ended = phase { true } else { false } }

  /// Notes until when the right to a subscription holds.
  mutating func allow(_ number: Int, until end: Date?) { subscriptions.allow(number, until: end) }

  /// When the first of the rights ends; nil for never.
  var nextEnd: Date? { subscriptions.nextEnd }

  /// Something that the client has asked for is refused.
  mutating func refused(_ ending: STOMPEnding) -> [Action] {
    phase = .ended
    return [.fail(ending)]
  }

  /// Decides again about subscriptions; the first that is refused ends the connection.
  ///
  /// - Parameter decide: the decision about a destination; nil if it cannot differ.
  mutating func recheck(_ decide: (STOMPSubscription) -> (Decision, STOMPEnding)?) -> [Action] {
    // What comes before the end is still done.
    if hasEnded { return [] }
    for subscription in subscriptions.all {
      guard let (decision, ending) = decide(subscription) else { continue }
      guard decision.isAllowed else {
        phase = .ended
        return [.end(ending)]
      }
      subscriptions.allow(subscription.number, until: decision.end)
    }
    return []
  }

  // MARK: - Delivering

  /// Takes the next message of a topic.
  func deliver(_ message: LogMessage) -> [Action] {
    guard case .connected = phase, MessageNotes(message.headers).kind != .presence else {
      return []
    }
    let channel = message.channel.nameInApplication
    return subscriptions.all.sorted { $0.number < $1.number }.compactMap { subscription in
      guard case .topic(let name) = subscription.destination,
        name.text.utf8.elementsEqual(channel.utf8)
      else { return nil }
      return .send(
        .message(
          message.payload, message.headers, of: subscription, id: "\(message.timetoken)",
          version: version))
    }
  }

  /// Takes leased messages of a subscription.
  mutating func deliver(_ deliveries: [Delivery], of number: Int) -> [Action] {
    guard let subscription = subscription(number) else {
      return [.giveBack(deliveries.map(\.token))]
    }
    return deliveries.map { delivery in
      let id = subscriptions.addDelivery(delivery.token, to: number)
      var frame = STOMPFrame.message(
        delivery.payload, delivery.headers, of: subscription, id: "\(number)-\(id)",
        version: version)
      if delivery.attempt > 1 { frame.append("redelivered", "true") }
      frame.append(MessageNotes.prefix + "attempt", String(delivery.attempt))
      return .sendLeased(frame, number: id, subscription: number)
    }
  }

  /// A leased message has left: a subscription with the mode auto acknowledges it.
  mutating func didSend(_ delivery: UInt64, of number: Int) -> [Action] {
    guard let settlement = subscriptions.settlement(ofSent: delivery, number) else { return [] }
    subscriptions.take(settlement)
    return [.perform([.settle(settlement)], receipt: nil)]
  }

  /// Operations have been done: their subscriptions can take more.
  func didPerform(_ operations: [STOMPOperation]) -> [Action] {
    operations.compactMap { operation in
      guard case .settle(let settlement) = operation,
        subscription(settlement.subscription) != nil
      else { return nil }
      return .credit(settlement.deliveries.count, subscription: settlement.subscription)
    }
  }

  // MARK: - Settling

  private mutating func settle(
    _ kind: STOMPSettlement.Kind, _ frame: STOMPFrame
  ) throws(STOMPFault) -> [Action] {
    let settlement = try subscriptions.settlement(
      kind, of: frame.value(version < .v12 ? "message-id" : "id"))
    let actions = try add(.settle(settlement), frame)
    // From here on they are the operation's: until then, the end of the connection gives them back.
    subscriptions.take(settlement)
    return actions
  }

  /// Does an operation now, or with its transaction.
  private mutating func add(
    _ operation: STOMPOperation, _ frame: STOMPFrame
  ) throws(STOMPFault) -> [Action] {
    guard let name = frame["transaction"] else {
      return [.perform([operation], receipt: frame["receipt"])]
    }
    guard transactions[name] != nil else { throw Self.noTransaction }
    try transactions[name]?.append(operation, limits)
    let receipt = Self.receipt(frame["receipt"])
    guard case .publish(let publication) = operation else { return receipt }
    return [.authorize(publication, receipt: frame["receipt"])] + receipt
  }

  // MARK: - Transactions

  /// Drops the transactions of a connection that has ended.
  mutating func dropTransactions() { transactions = [:] }

  private static let noTransaction = STOMPFault("there is no such transaction")

  private mutating func begin(
    _ frame: STOMPFrame, _ now: UInt64
  ) throws(STOMPFault) -> [Action] {
    let name = try frame.value("transaction")
    guard transactions[name] == nil else { throw STOMPFault("the transaction is there already") }
    guard transactions.count < limits.transactionCount else {
      throw STOMPFault("the connection has \(limits.transactionCount) transactions")
    }
    transactions[name] = STOMPTransaction(
      deadlineNanoseconds: now + limits.transactionTime.nanoseconds)
    return []
  }

  private mutating func endTransaction(
    _ frame: STOMPFrame
  ) throws(STOMPFault) -> STOMPTransaction {
    guard let transaction = transactions.removeValue(forKey: try frame.value("transaction"))
    else { throw Self.noTransaction }
    return transaction
  }

  /// The deliveries that it would have settled wait for another acknowledgement.
  private mutating func abort(_ frame: STOMPFrame) throws(STOMPFault) -> [Action] {
    var givenBack: [LeaseToken] = []
    for settlement in try endTransaction(frame).settlements
    where !subscriptions.restore(settlement) {
      givenBack += settlement.tokens
    }
    return givenBack.isEmpty ? [] : [.giveBack(givenBack)]
  }

  // MARK: - Time

  /// Looks at the clock.
  mutating func timePassed(atNanoseconds now: UInt64) -> [Action] {
    if hasEnded { return [] }
    if let deadline = frameDeadline, deadline <= now {
      return end(STOMPEnding(message: "a frame takes too long", status: 408))
    }
    if let deadline = agreedHeartBeat?.receiveDeadline, deadline <= now { return end(.silent) }
    if transactions.values.contains(where: { $0.deadlineNanoseconds <= now }) {
      return end(STOMPEnding(message: "a transaction was open too long", status: 408))
    }
    return []
  }

  private mutating func end(_ ending: STOMPEnding) -> [Action] {
    phase = .ended
    return [.end(ending)]
  }

  /// Nil until the client is connected: before, no one beats.
  private var agreedHeartBeat: STOMPHeartBeat? {
    if case .connected = phase { heartBeat } else { nil }
  }

  private var frameDeadline: UInt64? {
    switch phase {
    case .connecting, .authenticating: frameStart + limits.frameTime.nanoseconds
    case .connected: decoder.isInFrame ? frameStart + limits.frameTime.nanoseconds : nil
    case .ended: nil
    }
  }

  /// Whether the client is to be sent a heart-beat now.
  func needsHeartBeat(atNanoseconds now: UInt64) -> Bool {
    agreedHeartBeat?.sendDeadline.map { $0 <= now } ?? false
  }

  mutating func didSend(atNanoseconds now: UInt64) { heartBeat.didSend(at: now) }

  /// When the clock is to be looked at again; nil for never.
  var nextDeadlineNanoseconds: UInt64? {
    if hasEnded { return nil }
    let deadlines = transactions.values.map(\.deadlineNanoseconds)
    return
      (deadlines
      + [frameDeadline, agreedHeartBeat?.receiveDeadline, agreedHeartBeat?.sendDeadline]
      .compactMap(\.self))
      .min()
  }

  // MARK: - The end

  /// All leases that the client holds.
  var tokens: [LeaseToken] {
    subscriptions.tokens
      + transactions.values.flatMap { $0.settlements.flatMap(\.tokens) }
  }
}
