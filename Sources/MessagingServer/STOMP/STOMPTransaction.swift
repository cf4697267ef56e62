internal import MessagingQueue

/// A part of a transaction.
enum STOMPOperation: Sendable {
  case publish(STOMPPublication)
  case settle(STOMPSettlement)

  /// The leases that it settles.
  var tokens: [LeaseToken] {
    if case .settle(let settlement) = self { settlement.tokens } else { [] }
  }

  fileprivate var byteCount: Int {
    if case .publish(let publication) = self { publication.byteCount } else { 0 }
  }
}

/// Deliveries of one subscription that are settled together.
struct STOMPSettlement: Sendable {
  enum Kind: Sendable, Equatable {
    case acknowledge
    /// The messages are ready again, or dead letters if their consumer's attempts are used up.
    case release
    /// The messages become dead letters.
    case reject
  }

  /// A delivery that waits for its acknowledgement.
  struct Unsettled: Sendable, Equatable {
    /// Its number in the connection.
    let number: UInt64
    let token: LeaseToken
  }

  let kind: Kind
  /// The number of the subscription in the connection.
  let subscription: Int
  let deliveries: [Unsettled]

  var tokens: [LeaseToken] { deliveries.map(\.token) }
}

/// What a client has sent between BEGIN and COMMIT.
struct STOMPTransaction: Sendable {
  private(set) var operations: [STOMPOperation] = []
  private(set) var byteCount = 0
  /// When it is given up, on a clock that does not go back.
  let deadlineNanoseconds: UInt64

  init(deadlineNanoseconds: UInt64) { self.deadlineNanoseconds = deadlineNanoseconds }

  /// What it takes in memory, about.
  var memoryByteCount: Int { byteCount + 512 * operations.count }

  /// The deliveries that it settles.
  var settlements: [STOMPSettlement] {
    operations.compactMap { if case .settle(let settlement) = $0 { settlement } else { nil } }
  }

  /// - Throws: ``STOMPFault`` beyond the limits.
  mutating func append(
    _ operation: STOMPOperation, _ limits: STOMPLimits
  ) throws(STOMPFault) {
    guard operations.count < limits.transactionFrameCount else {
      throw STOMPFault("the transaction has more than \(limits.transactionFrameCount) frames")
    }
    guard byteCount + operation.byteCount <= limits.transactionByteCount else {
      throw STOMPFault("the transaction has more than \(limits.transactionByteCount) bytes")
    }
    operations.append(operation)
    byteCount += operation.byteCount
  }
}

/// What a connection can do.
struct STOMPLimits: Sendable {
  var frames = STOMPFrameLimits()
  /// The most subscriptions of a connection.
  ///
  /// Default: 100.
  var subscriptionCount = 100
  /// How many deliveries a subscription can hold, unless it says otherwise.
  ///
  /// Default: 10.
  var prefetchCount = 10
  /// Default: 1,000.
  var maximumPrefetchCount = 1_000
  /// How many leased messages of all subscriptions can wait for a client that does not read; each can have one.
  ///
  /// Default: 64.
  var unreadCount = 64
  /// The most transactions of a connection at the same time.
  ///
  /// Default: 16.
  var transactionCount = 16
  /// Default: 1,000.
  var transactionFrameCount = 1_000
  /// Bodies and headers.
  ///
  /// Default: 1 MiB.
  var transactionByteCount = 1 << 20
  /// How long a transaction can be open.
  ///
  /// Default: 60 seconds.
  var transactionTime: Duration = .seconds(60)
  /// How long a client can take to connect, and to finish a frame.
  ///
  /// Default: 30 seconds.
  var frameTime: Duration = .seconds(30)
  /// The shortest time between heart-beats, in both directions.
  ///
  /// Default: 1 second.
  var heartBeatTime: Duration = .seconds(1)
}

/// How a connection ends by the server: an ERROR frame, then the close.
struct STOMPEnding: Error, Sendable, Equatable {
  /// What happened, for the header `message`.
  let message: String
  /// The status for logs and metrics.
  var status = 400
  /// The receipt that the frame asked for that could not be handled.
  var receipt: String?

  static let sealed = STOMPEnding(message: "the server is locked", status: 503)
  static let cutOff = STOMPEnding(message: HomeGate.cutOff, status: 503)
  static let stopping = STOMPEnding(message: "the server stops: connect again", status: 503)
  static let slow = STOMPEnding(message: "the client reads too slowly")
  static let outOfMemory = STOMPEnding(
    message: "the connection holds too much memory: connect again", status: 503)
  static let silent = STOMPEnding(message: "the client has sent no heart-beat", status: 408)
  static let failed = STOMPEnding(message: "the server cannot do this now", status: 500)

  /// One answer for a wrong name, key, user and password, so that it does not say which of them exist.
  static let unknownClient = forbidden(
    "host, login and passcode are not an application and a key or user of it")

  static func forbidden(_ ground: String) -> STOMPEnding {
    STOMPEnding(message: "access refused: \(ground)", status: 403)
  }

  /// This ending, because of a frame that has asked for a receipt.
  func of(_ receipt: String?) -> STOMPEnding {
    var ending = self
    ending.receipt = receipt
    return ending
  }

  var frame: STOMPFrame {
    var frame = STOMPFrame(
      "ERROR",
      [
        ("message", message), (MessageNotes.prefix + "status", "\(status)"),
        ("content-type", "text/plain"),
      ], body: Array(message.utf8))
    if let receipt { frame.append("receipt-id", receipt) }
    if status == 505 {
      frame.append("version", STOMPVersion.allCases.map(\.rawValue).joined(separator: ","))
    }
    frame.append("content-length", String(frame.body.count))
    return frame
  }
}
