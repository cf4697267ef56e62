internal import AccessControl
internal import MessagingQueue

/// Gives a fuzzer access to STOMP's frames and to the session of a connection.
@_spi(Testing)
public enum STOMPProbe {
  /// A frame.
  public struct Frame: Sendable, Equatable {
    /// The first line.
    public let command: String
    /// Names and values in their order, without escapes.
    public let headers: [[String]]
    /// The bytes behind the headers.
    public let body: [UInt8]

    init(_ frame: STOMPFrame) {
      command = frame.command
      headers = frame.headers.map { [$0.name, $0.value] }
      body = frame.body
    }

    /// The bytes of the frame, for a client of this version.
    public func encoded(_ version: String) -> [UInt8] {
      STOMPFrame(command, headers.map { ($0[0], $0[1]) }, body: body)
        .encoded(STOMPVersion(rawValue: version) ?? .v10)
    }
  }

  /// The limits of frames, so low that a short input reaches them.
  public static let commandByteCount = 32
  /// The most headers of a frame.
  public static let headerCount = 8
  /// The most bytes of all header lines together.
  public static let headerByteCount = 256
  /// The largest body, in bytes.
  public static let bodyByteCount = 200

  fileprivate static var limits: STOMPFrameLimits {
    var limits = STOMPFrameLimits()
    limits.commandByteCount = commandByteCount
    limits.headerCount = headerCount
    limits.headerByteCount = headerByteCount
    limits.bodyByteCount = bodyByteCount
    return limits
  }

  /// Decodes bytes that come in pieces.
  ///
  /// - Parameters:
  ///   - version: nil before one is agreed on.
  ///   - isOurs: whether the server has written them, for which the limits do not hold.
  /// - Returns: the frames, and whether the last bytes are broken, or in a frame.
  public static func decode(
    _ pieces: [ArraySlice<UInt8>], _ version: String?, isOurs: Bool = false
  ) -> (frames: [Frame], isBroken: Bool, isInFrame: Bool) {
    var decoder = STOMPDecoder(isOurs ? STOMPFrameLimits() : limits)
    decoder.version = version.flatMap(STOMPVersion.init(rawValue:))
    var frames: [Frame] = []
    do throws(STOMPFault) {
      for piece in pieces {
        var rest = piece
        while !rest.isEmpty {
          if let frame = try decoder.next(&rest) { frames.append(Frame(frame)) }
        }
      }
    } catch {
      return (frames, true, decoder.isInFrame)
    }
    return (frames, false, decoder.isInFrame)
  }

  /// What becomes of a lease.
  public enum Settlement: Sendable, Equatable {
    /// Its message is done, ready again, or a dead letter.
    case acknowledge, release, reject
  }

  /// The session of a connection.
  public struct Session {
    /// What is done.
    public enum Action: Sendable, Equatable {
      /// A frame for the client, and its bytes.
      case send(Frame, [UInt8])
      /// A leased message for the client, with its number and that of its subscription.
      case sendLeased(Frame, [UInt8], number: UInt64, subscription: Int)
      /// Who connects is to be found out.
      case authenticate
      /// A subscription, to a queue or a topic.
      case subscribe(Int, isQueue: Bool, prefetchCount: Int)
      /// Its end, with the leases that go back.
      case unsubscribe(Int, [String])
      /// Operations: how many messages are published, and which leases are settled.
      case perform(publications: Int, byteCount: Int, settled: [(Settlement, [String])], Work)
      /// Leases that go back.
      case giveBack([String])
      /// A subscription can take more.
      case credit(Int, subscription: Int)
      /// The name of a receipt.
      case receipt(String)
      /// The client has disconnected.
      case close
      /// An error, behind all operations or immediately.
      case fail, end

      /// Whether two are the same.
      public static func == (a: Action, b: Action) -> Bool { "\(a)" == "\(b)" }
    }

    /// Operations that are not done.
    public struct Work: Sendable, CustomStringConvertible {
      fileprivate let operations: [STOMPOperation]
      /// The subscriptions whose deliveries they settle, each as often as it has some.
      public var subscriptions: [Int] {
        operations.flatMap { operation -> [Int] in
          guard case .settle(let settlement) = operation else { return [] }
          return settlement.deliveries.map { _ in settlement.subscription }
        }
      }
      /// Nothing, so that two actions can be compared.
      public var description: String { "" }
    }

    /// The most subscriptions.
    public static let subscriptionCount = 3
    /// The most deliveries that a subscription can ask for.
    public static let maximumPrefetchCount = 5
    /// The most transactions.
    public static let transactionCount = 2
    /// The most frames of a transaction.
    public static let transactionFrameCount = 4
    /// The most bytes of a transaction.
    public static let transactionByteCount = 300

    private var session: STOMPSession
    private let channel: Channel

    /// Begins.
    public init(atNanoseconds now: UInt64) throws {
      var limits = STOMPLimits()
      limits.frames = STOMPProbe.limits
      limits.subscriptionCount = Self.subscriptionCount
      limits.prefetchCount = 2
      limits.maximumPrefetchCount = Self.maximumPrefetchCount
      limits.transactionCount = Self.transactionCount
      limits.transactionFrameCount = Self.transactionFrameCount
      limits.transactionByteCount = Self.transactionByteCount
      session = STOMPSession(limits, atNanoseconds: now)
      channel = try Channel("fuzz/c")
    }

    /// The version that is spoken.
    public var version: String { session.version.rawValue }
    /// Whether who connects is being found out.
    public var isAuthenticating: Bool { session.isAuthenticating }
    /// Whether nothing more is read.
    public var hasEnded: Bool { session.hasEnded }
    /// The leases that the client holds.
    public var tokens: [String] { session.tokens.map(\.description) }
    /// When the clock is to be looked at; nil for never.
    public var nextDeadlineNanoseconds: UInt64? { session.nextDeadlineNanoseconds }

    /// Takes bytes of the client.
    public mutating func receive(_ bytes: [UInt8], atNanoseconds now: UInt64) -> [Action] {
      actions(session.receive(bytes, atNanoseconds: now))
    }

    /// Who connects is known, or refused.
    public mutating func authenticated(_ isAllowed: Bool, atNanoseconds now: UInt64) -> [Action] {
      actions(
        isAllowed
          ? session.connected("fuzz", atNanoseconds: now) : session.refused(.forbidden("no user")))
    }

    /// Something is refused.
    public mutating func refused() -> [Action] { actions(session.refused(.failed)) }

    /// Decides again about all subscriptions.
    public mutating func recheck(isAllowed: Bool) -> [Action] {
      actions(
        session.recheck { _ in
          (isAllowed ? .allowed(.endpoint) : .refused(.noGrant), .forbidden("no grant"))
        })
    }

    /// Takes a message of a topic, whose headers and body are those of a frame.
    public mutating func deliver(_ frame: Frame, to topic: String) -> [Action] {
      guard let channel = try? Channel("fuzz/\(topic)"),
        let place = Timetoken(rawValue: 17_000_000_000_000_000)
      else { return [] }
      return actions(
        session.deliver(
          LogMessage(
            timetoken: place, channel: channel, payload: frame.body,
            headers: Self.headers(of: frame))))
    }

    /// Takes leased messages of a subscription, each with the token of its number.
    public mutating func deliver(
      _ frame: Frame, numbers: Range<Int64>, to subscription: Int
    ) -> [Action] {
      let deliveries = numbers.compactMap { number in
        Timetoken(rawValue: 17_000_000_000_000_000 + number).map {
          Delivery(
            of: Message(channel: channel, payload: frame.body, headers: Self.headers(of: frame)),
            at: $0, attempt: 1 + Int(number % 2), maximumAttempts: nil)
        }
      }
      return actions(session.deliver(deliveries, of: subscription))
    }

    /// The token of a delivery with this number.
    public static func token(_ number: Int64) -> String {
      "\(17_000_000_000_000_000 + number)-1-\(String(repeating: "0", count: 32))"
    }

    /// A leased message has left.
    public mutating func didSend(_ number: UInt64, of subscription: Int) -> [Action] {
      actions(session.didSend(number, of: subscription))
    }

    /// Operations have been done.
    public mutating func didPerform(_ work: Work) -> [Action] {
      actions(session.didPerform(work.operations))
    }

    /// Looks at the clock, as the timer of the connection does.
    public mutating func timePassed(atNanoseconds now: UInt64) -> [Action] {
      if session.needsHeartBeat(atNanoseconds: now) { session.didSend(atNanoseconds: now) }
      return actions(session.timePassed(atNanoseconds: now))
    }

    /// What a message keeps of a frame that a client has sent.
    private static func headers(of frame: Frame) -> [String: String] {
      var headers: [String: String] = [:]
      for header in frame.headers where STOMPPublication.isKept(header[0]) {
        headers[header[0]] = header[1]
      }
      return headers
    }

    private func actions(_ actions: [STOMPSession.Action]) -> [Action] {
      actions.compactMap { action in
        switch action {
        // The user of the probe allows everything.
        case .authorize: nil
        case .send(let frame): .send(Frame(frame), frame.encoded(session.version))
        case .sendLeased(let frame, let number, let subscription):
          .sendLeased(
            Frame(frame), frame.encoded(session.version), number: number,
            subscription: subscription)
        case .authenticate: .authenticate
        case .subscribe(let subscription, _):
          .subscribe(
            subscription.number,
            isQueue: { if case .queue = subscription.destination { true } else { false } }(),
            prefetchCount: subscription.prefetchCount)
        case .unsubscribe(let subscription, let tokens):
          .unsubscribe(subscription.number, tokens.map(\.description))
        case .perform(let operations, _): Self.perform(operations)
        case .giveBack(let tokens): .giveBack(tokens.map(\.description))
        case .credit(let count, let subscription): .credit(count, subscription: subscription)
        case .receipt(let id): .receipt(id)
        case .close: .close
        case .fail: .fail
        case .end: .end
        }
      }
    }

    private static func perform(_ operations: [STOMPOperation]) -> Action {
      var (count, byteCount) = (0, 0)
      var settled: [(Settlement, [String])] = []
      for operation in operations {
        switch operation {
        case .publish(let publication):
          count += 1
          byteCount += publication.byteCount
        case .settle(let settlement):
          let kind: Settlement =
            switch settlement.kind {
            case .acknowledge: .acknowledge
            case .release: .release
            case .reject: .reject
            }
          settled.append((kind, settlement.tokens.map(\.description)))
        }
      }
      return .perform(
        publications: count, byteCount: byteCount, settled: settled,
        Work(operations: operations))
    }
  }
}
