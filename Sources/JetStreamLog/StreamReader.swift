internal import CNATS
internal import Replication

/// Reads the records of a stream in their order, by a consumer that the brokers forget when it is no longer asked.
///
/// A consumer is not the truth: a replica serves it, which can lack the end of the stream. Who reads compares what comes
/// before with the leader, and asks the leader when nothing comes. One thread uses a reader.
@safe final class StreamReader {
  /// The messages and bytes of one request, and how long it is open.
  fileprivate static let batch = 500
  fileprivate static let batchBytes = 8 << 20
  private static let requestNanoseconds: Int64 = 5_000_000_000
  /// How long the brokers have to make a consumer: less than a node can be blind.
  private static let timeoutMilliseconds: Int64 = 500

  private let inbox: ReaderInbox
  private let name: String
  private let nextSubject: String
  /// The sequence of the next record.
  private var next: UInt64
  /// How many messages the consumer has sent, by which one that was lost on the way is noticed.
  private var deliveryCount: UInt64 = 0
  /// The request that is open, what it still allows, and when the consumer has certainly told its end.
  private var request = ""
  private var credit = 0
  private var openUntil = ContinuousClock.now
  /// How many records the stream had behind the last one that came.
  private(set) var pending: UInt64 = 0
  /// Whether it can be read on; otherwise a new one is needed.
  private var isUsable = true

  /// Makes a consumer that begins with the record `next`.
  init(_ inbox: ReaderInbox, _ names: ShardNames, from next: UInt64) throws(LogError) {
    self.inbox = inbox
    self.next = next
    let connection = inbox.connection
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
    var options = unsafe jsOptions()
    unsafe jsOptions_Init(&options)
    unsafe options.Wait = Self.timeoutMilliseconds
    let status = unsafe js_AddConsumer(
      &info, connection.context, names.stream, &configuration, &options, &code)
    defer { unsafe jsConsumerInfo_Destroy(info) }
    try connection.requireAnswer(status, "reading the stream", code)
    name = unsafe info?.pointee.Name.map { unsafe String(cString: $0) } ?? ""
    nextSubject = "$JS.API.CONSUMER.MSG.NEXT.\(names.stream).\(name)"
    guard ShardNames.isSafe(name) else {
      throw LogError(.noAnswer, "the brokers gave a consumer a name that cannot be used")
    }
    inbox.empty()
  }

  /// Whether it can be read on from a place over a connection; otherwise a new one is needed.
  func continues(_ place: UInt64, over connection: BrokerConnection) -> Bool {
    isUsable && next == place + 1 && inbox.connection === connection
  }

  /// The records that follow, at most so many bytes; after a gap, one of them.
  ///
  /// - Parameter wait: how long it waits for the first one.
  func read(mostBytes: Int, wait: Duration) throws(LogError) -> [LogEntry] {
    var entries: [LogEntry] = []
    var byteCount = 0
    let end = ContinuousClock.now + wait
    while isUsable, byteCount < mostBytes, entries.count < Self.batch {
      try requestMore()
      let rest = entries.isEmpty ? max(.zero, end - .now) : .zero
      guard let message = try unsafe inbox.next(within: rest) else { break }
      defer { unsafe natsMsg_Destroy(message) }
      guard let entry = try unsafe entry(of: message) else { continue }
      if entry.sequence != next {
        // The stream has a gap. The next reader begins before it.
        isUsable = false
        if !entries.isEmpty { break }
      }
      next = entry.sequence + 1
      byteCount += entry.record.bytes.count
      entries.append(entry)
    }
    return entries
  }

  /// Keeps one request open.
  private func requestMore() throws(LogError) {
    guard credit == 0 else {
      // A consumer tells the end of each request. One that is gone tells nothing.
      if ContinuousClock.now >= openUntil { isUsable = false }
      return
    }
    let text = """
      {"batch":\(Self.batch),"max_bytes":\(Self.batchBytes),"expires":\(Self.requestNanoseconds)}
      """
    request = try inbox.request(text, to: nextSubject)
    credit = Self.batch
    openUntil = .now + .nanoseconds(2 * Self.requestNanoseconds)
  }

  /// Decodes a record; nil for what the consumer says of a request, and for what was read before or by another reader.
  private func entry(of message: OpaquePointer) throws(LogError) -> LogEntry? {
    var metadata: UnsafeMutablePointer<jsMsgMetaData>?
    guard unsafe natsMsg_GetMetaData(&metadata, message) == NATS_OK, let metadata = unsafe metadata
    else {
      unsafe endRequest(message)
      return nil
    }
    defer { unsafe jsMsgMetaData_Destroy(metadata) }
    guard let consumer = unsafe metadata.pointee.Consumer, unsafe String(cString: consumer) == name
    else { return nil }
    let sequence = unsafe metadata.pointee.Sequence.Stream
    deliveryCount += 1
    guard unsafe metadata.pointee.Sequence.Consumer == deliveryCount, sequence < .max else {
      // Some were lost on the way.
      isUsable = false
      return nil
    }
    credit = max(0, credit - 1)
    // A consumer begins before its place if the stream is shorter than that.
    guard sequence >= next else { return nil }
    pending = unsafe metadata.pointee.NumPending
    return try unsafe LogEntry(message, sequence: sequence, storedAt: metadata.pointee.Timestamp)
  }

  /// Takes what the consumer says of a request: that its time or its bytes are used up, or that it cannot be served.
  private func endRequest(_ message: OpaquePointer) {
    // What ends an earlier request says nothing of this one.
    guard let subject = unsafe natsMsg_GetSubject(message).map({ unsafe String(cString: $0) }),
      subject == request
    else { return }
    let status = unsafe header("Status", of: message)
    credit = 0
    if status == "408" { return }
    let description = unsafe header("Description", of: message)
    if status != "409" || !description.contains("Size Exceeds") { isUsable = false }
  }

  private func header(_ name: String, of message: OpaquePointer) -> String {
    var value: UnsafePointer<CChar>?
    guard unsafe natsMsgHeader_Get(message, name, &value) == NATS_OK else { return "" }
    return unsafe value.map { unsafe String(cString: $0) } ?? ""
  }
}

/// Where the records come for which the readers of a connection have asked.
///
/// It is one for all of them, as libnats cannot end a subscription before its connection: ``BrokerConnection/keep(_:)``. One
/// thread uses it.
@safe final class ReaderInbox {
  /// How many messages wait for a reader.
  private static let capacity = 4 * StreamReader.batch

  let connection: BrokerConnection
  private let subject: String
  private let subscription: OpaquePointer
  private var requestNumber = 0

  init(_ connection: BrokerConnection, _ names: ShardNames) throws(LogError) {
    self.connection = connection
    subject = names.newInbox()
    var subscription: OpaquePointer?
    try check(
      unsafe natsConnection_SubscribeSync(&subscription, connection.handle, "\(subject).*"),
      "reading the stream")
    guard let subscription = unsafe subscription else {
      throw LogError(.noAnswer, "reading the stream")
    }
    unsafe connection.keep(subscription)
    unsafe self.subscription = unsafe subscription
    // The library drops the rest: several readers can have asked, one after the other.
    _ = unsafe natsSubscription_SetPendingLimits(
      subscription, Int32(Self.capacity), Int32(4 * StreamReader.batchBytes))
  }

  /// Drops what earlier readers have asked for, which would leave no room for what the next one asks for.
  func empty() {
    // No more than it holds: brokers can send without an end.
    for _ in 0..<Self.capacity {
      var message: OpaquePointer?
      let status = unsafe natsSubscription_NextMsg(&message, subscription, 0)
      unsafe natsMsg_Destroy(message)
      if ![NATS_OK, NATS_SLOW_CONSUMER, NATS_NO_RESPONDERS].contains(status) { return }
    }
  }

  /// Asks a consumer.
  ///
  /// - Returns: the subject on which it says what becomes of the request.
  func request(_ text: String, to consumer: String) throws(LogError) -> String {
    requestNumber += 1
    let reply = "\(subject).\(requestNumber)"
    try connection.publish(Array(text.utf8), to: consumer, reply: reply)
    return reply
  }

  /// The next message; nil if none comes in this time.
  func next(within wait: Duration) throws(LogError) -> OpaquePointer? {
    var message: OpaquePointer?
    let milliseconds = Int64(wait / .milliseconds(1))
    // At 0 the library takes what is there.
    let status = unsafe natsSubscription_NextMsg(&message, subscription, milliseconds)
    if status == NATS_TIMEOUT { return nil }
    try check(status, "reading the stream")
    return unsafe message
  }
}
