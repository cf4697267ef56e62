internal import CNATS
internal import Replication

/// The stream of a shard, at its leader.
struct ShardStream {
  /// Tells our streams from all others, and their format from later ones.
  static let description = "datavault log 1"
  private static let notFound = 10037
  private static let streamNotFound = 10059

  let connection: BrokerConnection
  let names: ShardNames

  /// How long a replica can be silent for the leader to count it: Raft's heartbeats come every second.
  private static let silenceNanoseconds: Int64 = 2_500_000_000

  /// The numbers of a stream.
  struct Extent {
    let first: UInt64
    let last: UInt64

    init(_ state: jsStreamState) {
      // Brokers can say any number.
      last = unsafe min(state.LastSeq, .max - 1)
      first = unsafe max(1, state.Msgs == 0 ? last + 1 : state.FirstSeq)
    }
  }

  /// Creates the stream.
  ///
  /// Only an operator does that: a stream that is "not found" can come back, and creating it would destroy it.
  func create(replicas: Int) throws(LogError) {
    do throws(LogError) {
      try unsafe info { _ in }
      throw LogError(
        .streamExists, "the brokers have a stream of this shard already",
        hint: "join it, or remove it at the brokers if no member needs it")
    } catch {
      guard error.code == .streamMissing else { throw error }
    }
    var code = jsErrCode(0)
    let status = unsafe names.stream.withCString { name in
      unsafe names.records.withCString { subject in
        unsafe Self.description.withCString { description in
          var subjects: [UnsafePointer<CChar>?] = unsafe [subject]
          return unsafe subjects.withUnsafeMutableBufferPointer { subjects in
            var configuration = unsafe jsStreamConfig()
            unsafe jsStreamConfig_Init(&configuration)
            unsafe configuration.Name = unsafe name
            unsafe configuration.Description = unsafe description
            unsafe configuration.Subjects = subjects.baseAddress
            unsafe configuration.SubjectsLen = 1
            unsafe configuration.Retention = js_LimitsPolicy
            // At a limit, publishing is refused. The other policy would remove the oldest records.
            unsafe configuration.Discard = js_DiscardNew
            unsafe configuration.Storage = js_FileStorage
            unsafe configuration.MaxMsgSize = Int32(SealedRecord.mostBytes)
            unsafe configuration.Replicas = Int64(replicas)
            // Only a trim removes records.
            unsafe configuration.DenyDelete = true
            // Nothing has a message id: the numbers of records tell repetitions.
            unsafe configuration.Duplicates = 100_000_000
            return unsafe js_AddStream(nil, connection.context, &configuration, nil, &code)
          }
        }
      }
    }
    try connection.requireAnswer(status, "creating the stream", code)
  }

  /// Throws unless the stream is there, and is as ``create(replicas:)`` makes it.
  func require() throws(LogError) { _ = try extent() }

  /// The first and the last record; `last` is `first - 1` in an empty stream.
  ///
  /// - Parameter isQuick: whether it waits half a second for the answer, and not 3. Default: false.
  /// - Throws: `foreignStream` for a stream with other settings; `noAnswer` if its leader has lost the other replicas,
  ///   because there can be a new leader with more records.
  func extent(isQuick: Bool = false) throws(LogError) -> Extent {
    var isOurs = false
    var isLed = false
    let extent = try unsafe info(isQuick: isQuick) { info in
      isOurs = unsafe self.isOurs(info)
      isLed = unsafe Self.isLed(info)
      return unsafe Extent(info.State)
    }
    guard isOurs else {
      throw LogError(
        .foreignStream, "the brokers have a stream of the shard's name with other settings",
        hint: "restore its settings at the brokers, and look who changed them")
    }
    guard isLed else {
      throw LogError(
        .noAnswer, "the stream's leader does not hear a majority of its brokers",
        hint: "check the brokers, and the network between them")
    }
    return extent
  }

  private func isOurs(_ info: jsStreamInfo) -> Bool {
    guard let configuration = unsafe info.Config?.pointee else { return false }
    let description = unsafe configuration.Description.map { unsafe String(cString: $0) }
    let subject =
      unsafe configuration.SubjectsLen == 1
      ? unsafe configuration.Subjects?.pointee.map { unsafe String(cString: $0) } : nil
    // A limit refuses what is new, except one of time or for each subject, and a rollup: these remove what is stored.
    return unsafe description == Self.description && subject == names.records
      && configuration.Retention == js_LimitsPolicy && configuration.Discard == js_DiscardNew
      && configuration.Storage == js_FileStorage && configuration.MaxAge == 0
      && configuration.MaxMsgsPerSubject <= 0 && !configuration.AllowRollup
      && Int(configuration.MaxMsgSize) == SealedRecord.mostBytes && configuration.DenyDelete
      && !configuration.DenyPurge && !configuration.Sealed
      && configuration.Mirror == nil && configuration.SourcesLen == 0
  }

  /// Whether the leader has heard a majority of the replicas lately.
  private static func isLed(_ info: jsStreamInfo) -> Bool {
    guard let cluster = unsafe info.Cluster?.pointee, unsafe cluster.ReplicasLen > 0 else {
      return true
    }
    let count = unsafe Int(cluster.ReplicasLen)
    var heard = 0
    for index in 0..<count {
      guard let replica = unsafe cluster.Replicas?[index]?.pointee else { continue }
      if unsafe !replica.Offline && replica.Active < silenceNanoseconds { heard += 1 }
    }
    return 2 * (heard + 1) > count + 1
  }

  /// Reads from what the leader says of the stream.
  func info<Result>(
    isQuick: Bool = false, _ body: (jsStreamInfo) -> Result
  ) throws(LogError) -> Result {
    var info: UnsafeMutablePointer<jsStreamInfo>?
    var code = jsErrCode(0)
    var options = unsafe jsOptions()
    unsafe jsOptions_Init(&options)
    unsafe options.Wait = isQuick ? 500 : BrokerConnection.timeoutMilliseconds
    let status = unsafe js_GetStreamInfo(&info, connection.context, names.stream, &options, &code)
    defer { unsafe jsStreamInfo_Destroy(info) }
    if Int(code.rawValue) == Self.streamNotFound || status == NATS_NOT_FOUND {
      throw LogError(
        .streamMissing, "the brokers have no stream of this shard",
        hint:
          "it can be a broker without its disk or with a wrong key; it is never made again by itself"
      )
    }
    try connection.requireAnswer(status, "reading the state of the stream", code)
    guard let info = unsafe info else { throw LogError(NATS_ERR, during: "reading the stream") }
    return unsafe body(info.pointee)
  }

  /// The record at a place; nil if the stream has none there.
  func entry(at place: UInt64) throws(LogError) -> LogEntry? {
    var message: OpaquePointer?
    var code = jsErrCode(0)
    let status = unsafe js_GetMsg(
      &message, connection.context, names.stream, place, nil, &code)
    defer { unsafe natsMsg_Destroy(message) }
    if Int(code.rawValue) == Self.notFound || status == NATS_NOT_FOUND { return nil }
    try connection.requireAnswer(status, "reading a record", code)
    return try unsafe LogEntry(
      message, sequence: natsMsg_GetSequence(message), storedAt: natsMsg_GetTime(message))
  }

  /// The records that follow a place, asked one by one: at most 100, and none after so many bytes.
  func entries(after place: UInt64, mostBytes: Int) throws(LogError) -> [LogEntry] {
    var entries: [LogEntry] = []
    var byteCount = 0
    var last = place
    while entries.count < 100, byteCount < mostBytes, last < .max - 1 {
      guard let entry = try entry(at: last + 1), entry.sequence == last + 1 else { break }
      last = entry.sequence
      byteCount += entry.record.bytes.count
      entries.append(entry)
    }
    return entries
  }

  /// Removes the records up to a place.
  func trim(through place: UInt64) throws(LogError) {
    // Without a place, all would be removed.
    guard place > 0, place < .max else { return }
    var code = jsErrCode(0)
    var options = unsafe jsOptions()
    unsafe jsOptions_Init(&options)
    unsafe options.Wait = BrokerConnection.timeoutMilliseconds
    unsafe options.Stream.Purge.Sequence = place + 1
    try connection.requireAnswer(
      unsafe js_PurgeStream(connection.context, names.stream, &options, &code),
      "trimming the stream", code)
  }
}

extension LogEntry {
  /// A stored message.
  init(_ message: OpaquePointer?, sequence: UInt64, storedAt: Int64) throws(LogError) {
    let count = Int(unsafe natsMsg_GetDataLength(message))
    let bytes =
      unsafe natsMsg_GetData(message).map {
        unsafe [UInt8](UnsafeRawBufferPointer(start: $0, count: count))
      } ?? []
    do {
      self.init(sequence: sequence, storedAt: storedAt, try SealedRecord(reading: bytes))
    } catch {
      throw LogError(.noAnswer, "the digest of a record: \(error)")
    }
  }
}
