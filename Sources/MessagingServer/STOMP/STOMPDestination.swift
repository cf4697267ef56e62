internal import AccessControl
internal import MessagingQueue

/// What a client subscribes to, or sends to.
enum STOMPDestination: Sendable, Equatable {
  /// `/topic/CHANNEL`: what is published while the client is subscribed.
  case topic(ChannelName)
  /// `/queue/CHANNEL` or `/queue/CHANNEL/CONSUMER`: leases of the messages of a consumer.
  case queue(ChannelName, Consumer)

  /// - Throws: ``STOMPFault`` for a text that is no destination, or names something that is no channel of messages.
  init(_ text: String) throws(STOMPFault) {
    let parts = text.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count >= 3, parts[0].isEmpty, ["topic", "queue"].contains(parts[1]) else {
      throw STOMPFault(
        "the destination is not /topic/CHANNEL, /queue/CHANNEL or /queue/CHANNEL/CONSUMER")
    }
    guard let channel = try? ChannelName(String(parts[2])), !channel.isPattern, !channel.isReserved
    else { throw STOMPFault("the destination does not name a channel of messages") }
    switch (parts[1], parts.count) {
    case ("topic", 3): self = .topic(channel)
    case ("queue", 3): self = .queue(channel, .default)
    case ("queue", 4):
      let name = String(parts[3])
      guard !name.utf8.contains(UInt8(ascii: "/")), (try? Name(name)) != nil,
        let consumer = try? Consumer(name)
      else { throw STOMPFault("the destination does not name a consumer") }
      self = .queue(channel, consumer)
    default: throw STOMPFault("a topic has no consumers: subscribe to /queue/CHANNEL/CONSUMER")
    }
  }

  var channel: ChannelName {
    switch self {
    case .topic(let channel), .queue(let channel, _): channel
    }
  }
}

/// When a delivered message is acknowledged.
enum STOMPAckMode: String, Sendable {
  /// The server acknowledges it when it has been sent.
  case auto
  /// An ACK acknowledges it, and what was delivered before it to this subscription.
  case client
  /// An ACK acknowledges it alone.
  case individual = "client-individual"
}

/// A message that a client sends.
struct STOMPPublication: Sendable, Equatable {
  /// What the protocol itself reads or writes; a message does not keep these.
  private static let ownHeaders: Set<String> = [
    "destination", "content-length", "content-type", "transaction", "receipt", "receipt-id",
    "message-id", "subscription", "ack", "redelivered",
  ]

  let channel: ChannelName
  let body: [UInt8]
  /// A second message with the id is not stored.
  let deduplicationID: String?
  /// Of the client, and the notes of the server.
  let headers: [String: String]

  var byteCount: Int {
    headers.reduce(body.count) { $0 + $1.key.utf8.count + $1.value.utf8.count }
  }

  /// - Throws: ``STOMPFault`` without a destination that can be sent to.
  init(_ frame: STOMPFrame) throws(STOMPFault) {
    guard let text = frame["destination"] else { throw STOMPFault("destination is missing") }
    let destination = try STOMPDestination(text)
    if case .queue(_, let consumer) = destination, consumer != .default {
      throw STOMPFault("a message goes to all consumers of its channel: send to /queue/CHANNEL")
    }
    channel = destination.channel
    body = frame.body
    do throws(DeduplicationHeader.Fault) {
      // Of a repeated header, the first counts.
      deduplicationID = try DeduplicationHeader.id(
        of: frame[DeduplicationHeader.id].map { [$0] } ?? [])
    } catch {
      throw STOMPFault(error.message)
    }
    var notes = MessageNotes()
    // A body without a type is a binary blob: the specification, under Standard Headers.
    notes.contentType = frame["content-type"] ?? "application/octet-stream"
    var headers = notes.headers
    for header in frame.headers where Self.isKept(header.name) && headers[header.name] == nil {
      guard (try? Name(header.name)) != nil else {
        throw STOMPFault("the name of a header has a control character, or more than 255 bytes")
      }
      headers[header.name] = header.value
    }
    self.headers = headers
  }

  /// Whether a message keeps a header of its client.
  static func isKept(_ name: String) -> Bool {
    !ownHeaders.contains(name) && !name.utf8.starts(with: MessageNotes.prefix.utf8)
  }

  func message(in channel: Channel) -> Message {
    Message(
      channel: channel, payload: body, headers: headers, deduplicationID: deduplicationID)
  }
}
