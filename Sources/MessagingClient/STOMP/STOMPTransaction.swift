internal import MessageCipher
internal import Synchronization

/// What a transaction does: messages and acknowledgements that are committed together, or not.
///
/// It keeps them until the end of the closure, and sends nothing before. So it can take as long as it needs, and what the
/// closure does not complete needs no undoing.
public final class STOMPTransaction: Sendable {
  private struct State {
    var frames: [STOMPFrame] = []
    var settlements: [STOMPSettlement] = []
    var isEnded = false
  }

  let name: String
  private let cipher: MessageCipher?
  private let state = Mutex(State())

  init(_ name: String, _ cipher: MessageCipher?) {
    self.name = name
    self.cipher = cipher
  }

  /// Adds a message; the arguments are those of ``STOMPClient/send(_:to:contentType:headers:)``.
  ///
  /// - Throws: `invalidArgument`.
  public func send(
    _ body: [UInt8], to destination: String, contentType: String? = nil,
    headers: [String: String] = [:]
  ) throws(MessagingClientError) {
    var frame = try STOMPFrame.send(body, to: destination, contentType, headers, cipher)
    frame.append("transaction", name)
    try add(frame)
  }

  /// Adds the acknowledgement of a message; all messages of a transaction are of one connection.
  ///
  /// - Throws: `invalidArgument` for a message of another connection, of another client, or in the mode `auto`.
  public func acknowledge(_ message: STOMPMessage) throws(MessagingClientError) {
    let (frame, settlement) = message.settled(in: name)
    guard settlement.id != nil else { throw STOMPConnection.isSettled }
    try add(frame, settlement)
  }

  private func add(
    _ frame: STOMPFrame, _ settlement: STOMPSettlement? = nil
  ) throws(MessagingClientError) {
    try state.withLock { (state) throws(MessagingClientError) in
      guard !state.isEnded else {
        throw MessagingClientError(.invalidArgument, "the transaction has ended")
      }
      if let settlement {
        guard
          state.settlements.allSatisfy({
            $0.connection === settlement.connection && $0.generation == settlement.generation
          })
        else {
          throw MessagingClientError(
            .invalidArgument, "the messages of a transaction came by different connections")
        }
        state.settlements.append(settlement)
      }
      state.frames.append(frame)
    }
  }

  /// Ends it: what it does, from BEGIN to COMMIT.
  func end() -> (frames: [STOMPFrame], settlements: [STOMPSettlement]) {
    state.withLock { state in
      state.isEnded = true
      guard !state.frames.isEmpty else { return ([], []) }
      let header = [("transaction", name)]
      return (
        [STOMPFrame("BEGIN", header)] + state.frames + [STOMPFrame("COMMIT", header)],
        state.settlements
      )
    }
  }
}

extension STOMPFrame {
  /// Headers that the protocol or the client writes.
  private static let ownHeaders: Set<String> = [
    "destination", "content-length", "content-type", "transaction", "receipt", "receipt-id", "id",
    "message-id", "subscription", "ack", "redelivered",
  ]

  /// The frame that sends a message.
  ///
  /// - Throws: `invalidArgument`.
  static func send(
    _ body: [UInt8], to destination: String, _ contentType: String?, _ headers: [String: String],
    _ cipher: MessageCipher?
  ) throws(MessagingClientError) -> STOMPFrame {
    guard !destination.isEmpty else {
      throw MessagingClientError(.invalidArgument, "the destination is empty")
    }
    let body = try STOMPBody.seal(body, to: destination, cipher)
    guard body.count <= STOMPFrameLimits().bodyByteCount else {
      throw MessagingClientError(
        .invalidArgument, "the body is larger than \(STOMPFrameLimits().bodyByteCount) bytes")
    }
    var frame = STOMPFrame("SEND", [("destination", destination)], body: body)
    if let contentType { frame.append("content-type", contentType) }
    frame.append("content-length", "\(body.count)")
    for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
      guard !ownHeaders.contains(name), !name.utf8.starts(with: "datavault-".utf8) else {
        throw MessagingClientError(
          .invalidArgument, "the header '\(EscapedText(name).text)' is not for applications",
          hint: "use another name")
      }
      frame.append(name, value)
    }
    _ = try frame.encoded()
    return frame
  }
}
