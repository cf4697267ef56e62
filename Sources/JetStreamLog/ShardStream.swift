internal import CNATS
internal import Foundation
internal import Replication

/// The stream of a shard, at its leader.
struct ShardStream {
  /// Tells our streams from all others, and their format from later ones.
  static let description = "datavault log 1"
  private static let notFound = 10037
  private static let streamNotFound = 10059

  let connection: BrokerConnection
  let names: ShardNames

  /// The numbers of a stream.
  struct Extent {
    let first: UInt64
    let last: UInt64
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
            unsafe configuration.Replicas = Int64(replicas)
            // Nothing has a message id: the numbers of records tell repetitions.
            unsafe configuration.Duplicates = 100_000_000
            return unsafe js_AddStream(nil, connection.context, &configuration, nil, &code)
          }
        }
      }
    }
    try check(status, "creating the stream", code)
  }

  /// Throws unless the stream is there, and is as ``create(replicas:)`` makes it.
  func require() throws(LogError) {
    let isOurs = try unsafe info { info in
      guard let configuration = unsafe info.Config?.pointee else { return false }
      let description = unsafe configuration.Description.map { unsafe String(cString: $0) }
      let subject =
        unsafe configuration.SubjectsLen == 1
        ? unsafe configuration.Subjects?.pointee.map { unsafe String(cString: $0) } : nil
      return unsafe description == Self.description && subject == names.records
        && configuration.Retention == js_LimitsPolicy && configuration.Discard == js_DiscardNew
        && configuration.Storage == js_FileStorage && configuration.MaxAge == 0
        && configuration.Mirror == nil && configuration.SourcesLen == 0
    }
    guard isOurs else {
      throw LogError(
        .foreignStream, "the brokers have a stream of the shard's name with other settings",
        hint: "restore its settings at the brokers, and look who changed them")
    }
  }

  /// The first and the last record; `last` is `first - 1` in an empty stream.
  func extent() throws(LogError) -> Extent {
    try unsafe info { info in
      let state = unsafe info.State
      let last = unsafe state.LastSeq
      return unsafe Extent(first: state.Msgs == 0 ? last + 1 : state.FirstSeq, last: last)
    }
  }

  /// Reads from what the leader says of the stream.
  func info<Result>(_ body: (jsStreamInfo) -> Result) throws(LogError) -> Result {
    var info: UnsafeMutablePointer<jsStreamInfo>?
    var code = jsErrCode(0)
    let status = unsafe js_GetStreamInfo(&info, connection.context, names.stream, nil, &code)
    defer { unsafe jsStreamInfo_Destroy(info) }
    if Int(code.rawValue) == Self.streamNotFound || status == NATS_NOT_FOUND {
      throw LogError(
        .streamMissing, "the brokers have no stream of this shard",
        hint:
          "it can be a broker without its disk or with a wrong key; it is never made again by itself"
      )
    }
    try check(status, "reading the state of the stream", code)
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
    try check(status, "reading a record", code)
    return try unsafe LogEntry(
      message, sequence: natsMsg_GetSequence(message), storedAt: natsMsg_GetTime(message))
  }

  /// Removes the records up to a place.
  func trim(through place: UInt64) throws(LogError) {
    // Without a place, all would be removed.
    guard place > 0, place < .max else { return }
    var code = jsErrCode(0)
    var options = unsafe jsOptions()
    unsafe jsOptions_Init(&options)
    unsafe options.Wait = BrokerConnection.patience
    unsafe options.Stream.Purge.Sequence = place + 1
    try check(
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
