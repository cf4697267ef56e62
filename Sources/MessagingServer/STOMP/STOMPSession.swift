internal import AccessControl
internal import Foundation
internal import MessagingQueue

/// Who connects, as the frame CONNECT says.
struct STOMPConnecting: Sendable, Equatable {
  let host: String?
  let login: String?
  let passcode: String?
}

/// A subscription of a connection.
struct STOMPSubscription: Sendable {
  /// What the client calls it; nil for a client of 1.0 that names its destination only.
  let id: String?
  /// Its number in the connection, from 1.
  let number: Int
  /// As the client wrote it.
  let text: String
  let destination: STOMPDestination
  let mode: STOMPAckMode
  let prefetchCount: Int
  /// When the right ends; nil for never.
  var end: Date?
  /// In the order of their numbers.
  fileprivate(set) var unsettled: [STOMPSettlement.Unsettled] = []
}

/// One connection: what comes in, and what is to be done about it.
///
/// It does no I/O and has no clock.
struct STOMPSession {
  enum Action {
    case send(STOMPFrame)
    /// Send a leased message, and call ``didSend(_:of:)`` when the system has taken it.
    case sendLeased(STOMPFrame, number: UInt64, subscription: Int)
    /// Decide, and call ``connected(_:)`` or end.
    case authenticate(STOMPConnecting)
    /// Decide, and begin, or call ``refused(_:)``.
    case subscribe(STOMPSubscription)
    /// End what the subscription gets, and release its leases without counting an attempt.
    case unsubscribe(STOMPSubscription, [LeaseToken])
    /// Decide about the publications, and do all or nothing.
    case perform([STOMPOperation], receipt: String?)
    /// These are no longer the client's, which did not see them.
    case giveBack([LeaseToken])
    /// The subscription can take so many more.
    case credit(Int, subscription: Int)
    /// Send a receipt, after everything before it.
    case receipt(String)
    /// Close, after everything before it.
    case close
    /// Send an error and close, after everything before it.
    case fail(STOMPEnding)
    /// Send an error and close.
    case end(STOMPEnding)
  }

  private enum Phase {
    case connecting
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
  /// By what the client calls them.
  private var numbers: [String: Int] = [:]
  private var subscriptions: [Int: STOMPSubscription] = [:]
  private var transactions: [String: STOMPTransaction] = [:]
  private var lastSubscription = 0
  private var lastDelivery: UInt64 = 0

  init(_ limits: STOMPLimits = STOMPLimits(), atNanoseconds now: UInt64) {
    self.limits = limits
    decoder = STOMPDecoder(limits.frames)
    frameStart = now
  }

  // MARK: - Frames

  /// Takes bytes of the client.
  mutating func receive(_ bytes: [UInt8], atNanoseconds now: UInt64) -> [Action] {
    heartBeat.didReceive(at: now)
    var rest = bytes[...]
    var actions: [Action] = []
    while case .connecting = phase, actions.isEmpty, !rest.isEmpty {
      actions += next(&rest, now)
    }
    // What follows CONNECT waits until the version and the principal are known.
    return actions + receiveConnected(&rest, now)
  }

  private mutating func receiveConnected(
    _ rest: inout ArraySlice<UInt8>, _ now: UInt64
  ) -> [Action] {
    guard case .connected = phase else {
      if case .connecting = phase { waiting += rest }
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
    case ("SUBSCRIBE", _): return try subscribe(frame) + Self.receipt(receipt)
    case ("UNSUBSCRIBE", _): return try unsubscribe(frame) + Self.receipt(receipt)
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

  private static func value(_ name: String, _ frame: STOMPFrame) throws(STOMPFault) -> String {
    guard let value = frame[name], !value.isEmpty else { throw STOMPFault("\(name) is missing") }
    return value
  }

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
      "CONNECTED", [("version", version.rawValue), ("server", "DataVault"), ("session", name)])
    // Version 1.0 has none.
    if version > .v10 { answer.append("heart-beat", heartBeat.answer(limits.heartBeatTime)) }
    var rest = waiting[...]
    waiting = []
    return [.send(answer)] + receiveConnected(&rest, now)
  }

  // MARK: - Subscriptions

  private mutating func subscribe(_ frame: STOMPFrame) throws(STOMPFault) -> [Action] {
    let text = try Self.value("destination", frame)
    let id = version == .v10 ? frame["id"] : try Self.value("id", frame)
    let destination = try STOMPDestination(text)
    guard frame["selector"] == nil else { throw STOMPFault("this server has no selectors") }
    guard let mode = STOMPAckMode(rawValue: frame["ack"] ?? "auto") else {
      throw STOMPFault("ack is not auto, client or client-individual")
    }
    if case .topic = destination, mode != .auto {
      throw STOMPFault("messages of a topic have no acknowledgements: subscribe to a queue")
    }
    guard numbers[id ?? text] == nil else { throw STOMPFault("the subscription is there already") }
    guard numbers.count < limits.subscriptionCount else {
      throw STOMPFault("the connection has \(limits.subscriptionCount) subscriptions")
    }
    var prefetchCount = limits.prefetchCount
    if let count = frame["prefetch-count"] {
      guard count.utf8.count < 10, let number = Int(count), number > 0 else {
        throw STOMPFault("prefetch-count is not a number above 0")
      }
      prefetchCount = min(number, limits.maximumPrefetchCount)
    }
    lastSubscription += 1
    let subscription = STOMPSubscription(
      id: id, number: lastSubscription, text: text, destination: destination, mode: mode,
      prefetchCount: prefetchCount)
    numbers[id ?? text] = lastSubscription
    subscriptions[lastSubscription] = subscription
    return [.subscribe(subscription)]
  }

  private mutating func unsubscribe(_ frame: STOMPFrame) throws(STOMPFault) -> [Action] {
    let id = frame["id"] ?? (version == .v10 ? frame["destination"] : nil)
    guard let id, let number = numbers.removeValue(forKey: id),
      let subscription = subscriptions.removeValue(forKey: number)
    else { throw STOMPFault("there is no such subscription") }
    return [.unsubscribe(subscription, subscription.unsettled.map(\.token))]
  }

  /// The subscription with this number; nil if it has ended.
  func subscription(_ number: Int) -> STOMPSubscription? {
    if case .connected = phase { subscriptions[number] } else { nil }
  }

  /// Whether a subscription gets the live messages of a channel.
  func hasTopic(_ channel: ChannelName) -> Bool {
    subscriptions.values.contains { $0.destination == .topic(channel) }
  }

  var hasEnded: Bool { if case .ended = phase { true } else { false } }

  /// Notes until when the right to a subscription holds.
  mutating func allow(_ number: Int, until end: Date?) { subscriptions[number]?.end = end }

  /// When the first of the rights ends; nil for never.
  var nextEnd: Date? { subscriptions.values.compactMap(\.end).min() }

  /// Something that the client has asked for is refused.
  mutating func refused(_ ending: STOMPEnding) -> [Action] {
    phase = .ended
    return [.fail(ending)]
  }

  /// Decides again about subscriptions; the first that is refused ends the connection.
  ///
  /// - Parameter decide: the decision about a destination; nil if it cannot differ.
  mutating func recheck(_ decide: (STOMPSubscription) -> (Decision, STOMPEnding)?) -> [Action] {
    for (number, subscription) in subscriptions {
      guard let (decision, ending) = decide(subscription) else { continue }
      guard decision.isAllowed else {
        phase = .ended
        return [.end(ending)]
      }
      subscriptions[number]?.end = decision.end
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
    return subscriptions.values.sorted { $0.number < $1.number }.compactMap { subscription in
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
      lastDelivery += 1
      subscriptions[number]?.unsettled.append(
        STOMPSettlement.Unsettled(number: lastDelivery, token: delivery.token))
      var frame = STOMPFrame.message(
        delivery.payload, delivery.headers, of: subscription, id: "\(number)-\(lastDelivery)",
        version: version)
      if delivery.attempt > 1 { frame.append("redelivered", "true") }
      frame.append(MessageNotes.prefix + "attempt", String(delivery.attempt))
      return .sendLeased(frame, number: lastDelivery, subscription: number)
    }
  }

  /// A leased message has left: a subscription with the mode auto acknowledges it.
  mutating func didSend(_ delivery: UInt64, of number: Int) -> [Action] {
    guard subscriptions[number]?.mode == .auto,
      let index = subscriptions[number]?.unsettled.firstIndex(where: { $0.number == delivery }),
      let unsettled = subscriptions[number]?.unsettled.remove(at: index)
    else { return [] }
    let settlement = STOMPSettlement(
      kind: .acknowledge, subscription: number, deliveries: [unsettled])
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
    let id = try Self.value(version < .v12 ? "message-id" : "id", frame)
    let parts = id.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let number = Int(parts[0]), let delivery = UInt64(parts[1]),
      let subscription = subscriptions[number],
      let index = subscription.unsettled.firstIndex(where: { $0.number == delivery })
    else { throw STOMPFault("no message with this id waits for its acknowledgement") }
    let first = subscription.mode == .client ? 0 : index
    let settlement = STOMPSettlement(
      kind: kind, subscription: number, deliveries: Array(subscription.unsettled[first...index]))
    let actions = try add(.settle(settlement), frame)
    // From here on they are the operation's: until then, the end of the connection gives them back.
    subscriptions[number]?.unsettled.removeSubrange(first...index)
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
    return Self.receipt(frame["receipt"])
  }

  // MARK: - Transactions

  private static let noTransaction = STOMPFault("there is no such transaction")

  private mutating func begin(
    _ frame: STOMPFrame, _ now: UInt64
  ) throws(STOMPFault) -> [Action] {
    let name = try Self.value("transaction", frame)
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
    guard let transaction = transactions.removeValue(forKey: try Self.value("transaction", frame))
    else { throw Self.noTransaction }
    return transaction
  }

  /// The deliveries that it would have settled wait for another acknowledgement.
  private mutating func abort(_ frame: STOMPFrame) throws(STOMPFault) -> [Action] {
    var givenBack: [LeaseToken] = []
    for settlement in try endTransaction(frame).settlements {
      let number = settlement.subscription
      guard subscriptions[number] != nil else {
        givenBack += settlement.tokens
        continue
      }
      subscriptions[number]?.unsettled.append(contentsOf: settlement.deliveries)
      subscriptions[number]?.unsettled.sort { $0.number < $1.number }
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
    if let deadline = heartBeat.receiveDeadline, deadline <= now { return end(.silent) }
    if transactions.values.contains(where: { $0.deadlineNanoseconds <= now }) {
      return end(STOMPEnding(message: "a transaction was open too long", status: 408))
    }
    return []
  }

  private mutating func end(_ ending: STOMPEnding) -> [Action] {
    phase = .ended
    return [.end(ending)]
  }

  private var frameDeadline: UInt64? {
    switch phase {
    case .connecting: frameStart + limits.frameTime.nanoseconds
    case .connected: decoder.isInFrame ? frameStart + limits.frameTime.nanoseconds : nil
    case .ended: nil
    }
  }

  /// Whether the client is to be sent a heart-beat now.
  func needsHeartBeat(atNanoseconds now: UInt64) -> Bool {
    heartBeat.sendDeadline.map { $0 <= now } ?? false
  }

  mutating func didSend(atNanoseconds now: UInt64) { heartBeat.didSend(at: now) }

  /// When the clock is to be looked at again; nil for never.
  var nextDeadlineNanoseconds: UInt64? {
    if hasEnded { return nil }
    let deadlines = transactions.values.map(\.deadlineNanoseconds)
    return
      (deadlines
      + [frameDeadline, heartBeat.receiveDeadline, heartBeat.sendDeadline].compactMap(\.self))
      .min()
  }

  // MARK: - The end

  /// All leases that the client holds.
  var tokens: [LeaseToken] {
    subscriptions.values.flatMap { $0.unsettled.map(\.token) }
      + transactions.values.flatMap { $0.settlements.flatMap(\.tokens) }
  }
}

extension STOMPFrame {
  /// The frame of a message, without what belongs to its lease.
  fileprivate static func message(
    _ payload: [UInt8], _ headers: [String: String], of subscription: STOMPSubscription,
    id: String, version: STOMPVersion
  ) -> STOMPFrame {
    var frame = STOMPFrame(
      "MESSAGE", [("destination", subscription.text), ("message-id", id)], body: payload)
    if let id = subscription.id { frame.append("subscription", id) }
    if version == .v12, subscription.mode != .auto { frame.append("ack", id) }
    let notes = MessageNotes(headers)
    frame.append("content-type", notes.contentType ?? .contentType(of: payload))
    frame.append("content-length", String(payload.count))
    for (name, value) in headers.sorted(by: { $0.key < $1.key })
    where STOMPPublication.isKept(name) {
      frame.append(name, value)
    }
    for (name, value) in [
      ("publisher", notes.publisher), ("type", notes.customType), ("event", notes.eventName),
      ("meta", notes.meta),
    ] {
      if let value { frame.append(MessageNotes.prefix + name, value) }
    }
    return frame
  }
}
