internal import Foundation

/// A message of a subscription.
///
/// Unless the mode is `auto`, it is the client's until one of ``acknowledge()``, ``release()`` and ``reject()`` returns,
/// or its connection is lost. Then the server gives it again.
public struct STOMPMessage: Sendable {
  /// As the subscription named it.
  public let destination: String
  /// The body, decrypted if the client has a cipher.
  ///
  /// The error if it was not: the message is forged, damaged, or not for this key.
  public let content: Result<[UInt8], any Error>
  /// All headers of the frame; of a repeated one, the first.
  public let headers: [String: String]
  private let settlement: STOMPSettlement

  init(
    _ frame: STOMPFrame, _ feed: STOMPFeed, content: Result<[UInt8], any Error>,
    _ settlement: STOMPSettlement
  ) {
    destination = feed.destination
    self.content = content
    headers = Dictionary(
      frame.headers.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
    self.settlement = settlement
  }

  /// Unique in its connection only.
  public var messageID: String { headers["message-id"] ?? "" }
  /// What the body is, as its sender has said it or the server has found it; nil if no one has.
  public var contentType: String? { headers["content-type"] }
  /// Whether it came before, to this client or another one, which did not acknowledge it.
  public var isRedelivered: Bool { headers["redelivered"] == "true" }
  /// The number of this delivery, from 1; nil if the server does not count.
  public var attempt: Int? { headers["datavault-attempt"].flatMap { Int($0) } }
  /// The user id of a publisher of PubNub's or Pusher's protocol, as our server gives it.
  public var publisher: String? { headers["datavault-publisher"] }

  /// Reads the body as a value of JSON.
  ///
  /// - Throws: why it was not decrypted, or the error of `JSONDecoder`.
  public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
    try JSONDecoder().decode(type, from: Data(content.get()))
  }

  /// Acknowledges the message: on our server, it never comes again to its consumer on return.
  ///
  /// - Throws: `unavailable` if the connection that delivered it is lost, or the lease has ended: the message comes
  ///   again. `outcomeUnknown` if the connection was lost before the receipt: the message can come again.
  ///   `invalidArgument` if it was settled before, or the mode is `auto`.
  public func acknowledge() async throws(MessagingClientError) {
    try await settlement.settle(.acknowledge)
  }

  /// Gives the message back, for this client or another one; the delivery counts as an attempt.
  ///
  /// In the mode `client`, also what the subscription got before it.
  /// - Throws: as ``acknowledge()``.
  public func release() async throws(MessagingClientError) {
    try await settlement.settle(.release)
  }

  /// Gives the message up: on our server it becomes a dead letter.
  ///
  /// In the mode `client`, also what the subscription got before it.
  /// - Throws: as ``acknowledge()``.
  public func reject() async throws(MessagingClientError) {
    try await settlement.settle(.reject)
  }

  /// The frame that acknowledges the message in a transaction.
  func settled(in transaction: String) -> (frame: STOMPFrame, STOMPSettlement) {
    var frame = settlement.frame(.acknowledge)
    frame.append("transaction", transaction)
    return (frame, settlement)
  }
}

/// The right of one connection to settle a message.
struct STOMPSettlement: Sendable {
  enum Kind: Sendable {
    case acknowledge
    case release
    case reject
  }

  let connection: STOMPConnection
  let feed: UInt64
  let generation: UInt64
  /// What ACK names; nil in the mode `auto`.
  let id: String?

  func frame(_ kind: Kind) -> STOMPFrame {
    let id = id ?? ""
    return switch kind {
    case .acknowledge: STOMPFrame("ACK", [("id", id)])
    case .release: STOMPFrame("NACK", [("id", id)])
    // As RabbitMQ has it, and our server.
    case .reject: STOMPFrame("NACK", [("id", id), ("requeue", "false")])
    }
  }

  fileprivate func settle(_ kind: Kind) async throws(MessagingClientError) {
    try await connection.settle([frame(kind)], [self])
  }
}

/// The messages of a subscription that its connection can settle, in the order in which they came.
///
/// A server ends the connection for an acknowledgement that it does not expect, so that the client must know.
struct STOMPUnsettled: Sendable, Equatable {
  private var ids: [String] = []

  /// Adds a message.
  mutating func add(_ id: String) { ids.append(id) }

  /// Takes a message, and in the mode `client` all before it; false if it was settled before.
  mutating func take(_ id: String, _ mode: STOMPAcknowledgeMode) -> Bool {
    guard let index = ids.firstIndex(where: { $0.utf8.elementsEqual(id.utf8) }) else {
      return false
    }
    switch mode {
    case .auto: return false
    case .client: ids.removeSubrange(...index)
    case .clientIndividual: ids.remove(at: index)
    }
    return true
  }
}
