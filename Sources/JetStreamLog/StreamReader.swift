internal import CNATS
internal import Replication

/// Reads the records of a stream in their order, by a consumer that the brokers forget when it is no longer asked.
///
/// A consumer is not the truth: a replica serves it, which can lack the end of the stream. Who reads compares what comes
/// before with the leader. One thread uses a reader.
@safe final class StreamReader {
  /// The messages of one request, and how long it is open.
  private static let batch = 500
  private static let requestNanoseconds: Int64 = 5_000_000_000

  private let connection: BrokerConnection
  private let subscription: OpaquePointer
  private let inbox: String
  private let nextSubject: String
  /// The sequence of the next record.
  private(set) var next: UInt64
  /// What the open request still allows, and when it ends.
  private var credit = 0
  private var openUntil = ContinuousClock.now
  /// How many records the stream had behind the last one that came.
  private(set) var pending: UInt64 = 0
  /// Whether it can be read on; otherwise a new one is needed.
  private(set) var isUsable = true

  /// Makes a consumer that begins with the record `next`.
  init(_ connection: BrokerConnection, _ names: ShardNames, from next: UInt64) throws(LogError) {
    self.connection = connection
    self.next = next
    var configuration = unsafe jsConsumerConfig()
    unsafe jsConsumerConfig_Init(&configuration)
    unsafe configuration.AckPolicy = js_AckNone
    unsafe configuration.DeliverPolicy = js_DeliverByStartSequence
    unsafe configuration.OptStartSeq = next
    unsafe configuration.InactiveThreshold = 10_000_000_000
    unsafe configuration.Replicas = 1
    unsafe configuration.MemoryStorage = true
    var info: UnsafeMutablePointer<jsConsumerInfo>?
    var code = jsErrCode(0)
    let status = unsafe js_AddConsumer(
      &info, connection.context, names.stream, &configuration, nil, &code)
    defer { unsafe jsConsumerInfo_Destroy(info) }
    try check(status, "reading the stream", code)
    let name = unsafe info?.pointee.Name.map { unsafe String(cString: $0) } ?? ""
    nextSubject = "$JS.API.CONSUMER.MSG.NEXT.\(names.stream).\(name)"
    guard ShardNames.isSafe(name) else {
      throw LogError(.noAnswer, "the brokers gave a consumer a name that cannot be used")
    }
    var inbox: UnsafeMutablePointer<CChar>?
    try check(unsafe natsInbox_Create(&inbox), "reading the stream")
    defer { unsafe natsInbox_Destroy(inbox) }
    self.inbox = unsafe inbox.map { unsafe String(cString: $0) } ?? ""
    var subscription: OpaquePointer?
    try check(
      unsafe natsConnection_SubscribeSync(&subscription, connection.handle, self.inbox),
      "reading the stream")
    guard let subscription = unsafe subscription else {
      throw LogError(.noAnswer, "reading the stream")
    }
    unsafe self.subscription = unsafe subscription
    // Bounded by the requests.
    _ = unsafe natsSubscription_SetPendingLimits(subscription, -1, -1)
  }

  deinit { unsafe natsSubscription_Destroy(subscription) }

  /// The records that follow, at most so many bytes.
  ///
  /// - Parameter wait: how long it waits for the first one.
  func read(mostBytes: Int, wait: Duration) throws(LogError) -> [LogEntry] {
    var entries: [LogEntry] = []
    var byteCount = 0
    let end = ContinuousClock.now + wait
    while isUsable, byteCount < mostBytes, entries.count < Self.batch {
      try requestMore()
      let rest = entries.isEmpty ? max(.zero, end - .now) : .zero
      guard let message = try unsafe nextMessage(within: rest) else { break }
      defer { unsafe natsMsg_Destroy(message) }
      guard let entry = try unsafe entry(of: message) else { continue }
      byteCount += entry.record.bytes.count
      entries.append(entry)
    }
    return entries
  }

  /// Keeps a request open, half of which has not come yet.
  private func requestMore() throws(LogError) {
    guard credit < Self.batch / 2 || ContinuousClock.now >= openUntil else { return }
    let text = "{\"batch\":\(Self.batch),\"expires\":\(Self.requestNanoseconds)}"
    try check(
      unsafe natsConnection_PublishRequest(
        connection.handle, nextSubject, inbox, text, Int32(text.utf8.count)),
      "asking for records")
    credit = Self.batch
    openUntil = .now + .nanoseconds(Self.requestNanoseconds)
  }

  private func nextMessage(within wait: Duration) throws(LogError) -> OpaquePointer? {
    var message: OpaquePointer?
    let milliseconds = Int64(wait / .milliseconds(1))
    // At 0 the library takes what is there.
    let status = unsafe natsSubscription_NextMsg(&message, subscription, milliseconds)
    if status == NATS_TIMEOUT { return nil }
    try check(status, "reading the stream")
    return unsafe message
  }

  /// Decodes a record; nil for what the brokers say of a request.
  private func entry(of message: OpaquePointer) throws(LogError) -> LogEntry? {
    var metadata: UnsafeMutablePointer<jsMsgMetaData>?
    guard unsafe natsMsg_GetMetaData(&metadata, message) == NATS_OK, let metadata = unsafe metadata
    else {
      // A request has ended, or nothing answers for the consumer any more.
      if unsafe natsMsg_IsNoResponders(message) { isUsable = false }
      credit = 0
      return nil
    }
    defer { unsafe jsMsgMetaData_Destroy(metadata) }
    let sequence = unsafe metadata.pointee.Sequence.Stream
    guard sequence == next else {
      // Some were lost on the way, or the stream has a gap: the next reader begins there, and tells.
      isUsable = false
      return nil
    }
    credit -= 1
    next += 1
    pending = unsafe metadata.pointee.NumPending
    return try unsafe LogEntry(
      message, sequence: sequence, storedAt: metadata.pointee.Timestamp)
  }
}
