internal import AccessControl
internal import Foundation
internal import MessagingQueue

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

/// The subscriptions of a connection, and their deliveries that wait for an acknowledgement.
struct STOMPSubscriptions {
  private let limits: STOMPLimits
  /// By what the client calls them.
  private var numbers: [String: Int] = [:]
  private var subscriptions: [Int: STOMPSubscription] = [:]
  private var lastSubscription = 0
  private var lastDelivery: UInt64 = 0

  init(_ limits: STOMPLimits) { self.limits = limits }

  /// The subscription with this number; nil if it has ended.
  subscript(number: Int) -> STOMPSubscription? { subscriptions[number] }

  var all: some Collection<STOMPSubscription> { subscriptions.values }

  /// When the first of the rights ends; nil for never.
  var nextEnd: Date? { subscriptions.values.compactMap(\.end).min() }

  /// The leases that wait for an acknowledgement.
  var tokens: [LeaseToken] { subscriptions.values.flatMap { $0.unsettled.map(\.token) } }

  /// Notes until when the right to a subscription holds.
  mutating func allow(_ number: Int, until end: Date?) { subscriptions[number]?.end = end }

  /// Takes the frame SUBSCRIBE.
  ///
  /// - Throws: ``STOMPFault``.
  mutating func add(
    _ frame: STOMPFrame, _ version: STOMPVersion
  ) throws(STOMPFault) -> STOMPSubscription {
    let text = try frame.value("destination")
    let id = version == .v10 ? frame["id"] : try frame.value("id")
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
    let prefetchCount = try prefetchCount(frame)
    lastSubscription += 1
    let subscription = STOMPSubscription(
      id: id, number: lastSubscription, text: text, destination: destination, mode: mode,
      prefetchCount: prefetchCount)
    numbers[id ?? text] = lastSubscription
    subscriptions[lastSubscription] = subscription
    return subscription
  }

  private func prefetchCount(_ frame: STOMPFrame) throws(STOMPFault) -> Int {
    guard let count = frame["prefetch-count"] else { return limits.prefetchCount }
    guard count.utf8.count < 10, let number = Int(count), number > 0 else {
      throw STOMPFault("prefetch-count is not a number above 0")
    }
    return min(number, limits.maximumPrefetchCount)
  }

  /// Takes the frame UNSUBSCRIBE.
  ///
  /// - Throws: ``STOMPFault``.
  mutating func remove(
    _ frame: STOMPFrame, _ version: STOMPVersion
  ) throws(STOMPFault) -> STOMPSubscription {
    let id = frame["id"] ?? (version == .v10 ? frame["destination"] : nil)
    guard let id, let number = numbers.removeValue(forKey: id),
      let subscription = subscriptions.removeValue(forKey: number)
    else { throw STOMPFault("there is no such subscription") }
    return subscription
  }

  // MARK: - Deliveries

  /// Takes a leased message of a subscription, and numbers it in the connection.
  mutating func addDelivery(_ token: LeaseToken, to number: Int) -> UInt64 {
    lastDelivery += 1
    subscriptions[number]?.unsettled.append(
      STOMPSettlement.Unsettled(number: lastDelivery, token: token))
    return lastDelivery
  }

  /// What an acknowledgement settles: the delivery with this id, and with the mode client all before it.
  ///
  /// - Throws: ``STOMPFault``.
  func settlement(_ kind: STOMPSettlement.Kind, of id: String) throws(STOMPFault) -> STOMPSettlement
  {
    let parts = id.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let number = Int(parts[0]), let delivery = UInt64(parts[1]),
      let subscription = subscriptions[number],
      let index = subscription.unsettled.firstIndex(where: { $0.number == delivery })
    else { throw STOMPFault("no message with this id waits for its acknowledgement") }
    let first = subscription.mode == .client ? 0 : index
    return STOMPSettlement(
      kind: kind, subscription: number, deliveries: Array(subscription.unsettled[first...index]))
  }

  /// What a subscription with the mode auto settles when a message has left; nil for other modes.
  func settlement(ofSent delivery: UInt64, _ number: Int) -> STOMPSettlement? {
    guard let subscription = subscriptions[number], subscription.mode == .auto,
      let unsettled = subscription.unsettled.first(where: { $0.number == delivery })
    else { return nil }
    return STOMPSettlement(kind: .acknowledge, subscription: number, deliveries: [unsettled])
  }

  /// Hands deliveries over to an operation.
  mutating func take(_ settlement: STOMPSettlement) {
    let taken = Set(settlement.deliveries.map(\.number))
    subscriptions[settlement.subscription]?.unsettled.removeAll { taken.contains($0.number) }
  }

  /// Takes deliveries back from an operation that is not done; false if the subscription has ended.
  mutating func restore(_ settlement: STOMPSettlement) -> Bool {
    let number = settlement.subscription
    guard subscriptions[number] != nil else { return false }
    subscriptions[number]?.unsettled.append(contentsOf: settlement.deliveries)
    subscriptions[number]?.unsettled.sort { $0.number < $1.number }
    return true
  }
}

extension STOMPFrame {
  /// The frame of a message, without what belongs to its lease.
  static func message(
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
