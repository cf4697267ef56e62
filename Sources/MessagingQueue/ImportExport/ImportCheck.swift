internal import FileLayer
internal import Glibc
internal import SystemPackage
internal import VaultCrypto

/// A file of messages whose every line was checked before anything is changed.
struct CheckedImport: Sendable {
  let header: ExportHeader
  /// All lines, the last included.
  let lineCount: Int
  /// The greatest timetoken that its database ever assigned.
  let highWater: Int64
  /// The greatest timetoken in the file; 0 without messages.
  let lastTimetoken: Int64
  let byteCount: Int
  /// The chained digest of all lines: see ``LineChain``.
  let digest: [UInt8]
}

/// The rules of `docs/reference/message-export.md` that concern several lines.
struct ImportCheck {
  /// Timetokens further ahead of the clock would leave too few for new messages.
  private static let maximumLead: Int64 = 366 * 86_400 * 10_000_000

  private let configuration: EngineConfiguration
  private let latest: Int64
  private var header: ExportHeader?
  private var lastTimetoken: Int64 = 0
  private var highWater: Int64 = 0
  private var messageCount = 0
  private var lineCount = 0
  private var hasDeduplications = false
  /// Channels and consumers must come before the messages of their snapshot.
  private var hasMessages = false
  private var end: ExportEnd?

  /// - Parameter latest: the greatest timetoken that is allowed.
  init(_ configuration: EngineConfiguration, latest: Int64) {
    self.configuration = configuration
    self.latest = latest
  }

  /// The longest line that a message within the limits can need, with the state of many consumers.
  static func maximumLineByteCount(_ configuration: EngineConfiguration) -> Int {
    6 * (configuration.maximumPayloadByteCount + configuration.maximumHeaderByteCount) + 16 << 20
  }

  /// Reads the whole file, in constant memory.
  ///
  /// - Throws: `invalidFile`, with the number of the line.
  static func run(
    _ file: ExchangeFile, _ configuration: EngineConfiguration, now: UnixTime,
    progress: (WorkProgress) -> Void
  ) throws(EngineError) -> CheckedImport {
    var check = ImportCheck(configuration, latest: WallTime.ticks(of: now) + maximumLead)
    let total = 2 * Int(try file.status().st_size)
    let digest = RunningDigest()
    var chain = LineChain()
    while let line = try next(file, configuration, number: check.lineCount + 1) {
      do throws(LineFault) {
        try check.add(ExchangeRecord(line))
      } catch {
        throw EngineError(line: check.lineCount + 1, of: file.path, error)
      }
      try chain.add(line)
      if check.end == nil { try digest.update(line + [0x0A]) }
      if check.lineCount % 1000 == 0 {
        progress(WorkProgress(completed: min(file.byteCount, total / 2), total: total))
      }
    }
    guard let end = check.end, let header = check.header else {
      throw EngineError(
        line: check.lineCount + 1, of: file.path,
        LineFault("is missing: the file ends before its end record"))
    }
    if let expected = end.sha256, try digest.finalized().hexadecimal != expected {
      throw EngineError(
        .invalidFile, "\(file.path) differs from its export: the digest does not match",
        hint:
          "nothing was imported; copy the file again, or remove sha256 from the last line of a "
          + "file that you changed on purpose")
    }
    return CheckedImport(
      header: header, lineCount: check.lineCount, highWater: check.highWater,
      lastTimetoken: check.lastTimetoken,
      byteCount: file.byteCount, digest: chain.digest)
  }

  /// The next line; nil at the end.
  static func next(
    _ file: ExchangeFile, _ configuration: EngineConfiguration, number: Int
  ) throws(EngineError) -> [UInt8]? {
    switch try file.next(maximumByteCount: maximumLineByteCount(configuration)) {
    case .line(let line): return line
    case .end: return nil
    case .torn:
      throw EngineError(line: number, of: file.path, LineFault("has no end: a part is missing"))
    case .tooLong:
      throw EngineError(
        line: number, of: file.path, LineFault("is longer than any message within the limits"))
    }
  }

  /// Adds the next line, unless it breaks a rule together with earlier lines.
  mutating func add(_ record: ExchangeRecord) throws(LineFault) {
    guard end == nil else { throw LineFault("comes after the end record") }
    switch record {
    case .export(let header):
      guard lineCount == 0 else { throw LineFault("begins another export") }
      self.header = header
      try take(header.moment)
    case _ where header == nil: throw LineFault("is not an export record, which comes first")
    case .resumed(let moment):
      try take(moment)
      hasMessages = false
    case .consumer: try requireBeforeMessages()
    case .channel(let channel):
      try requireBeforeMessages()
      try require(channel.removedThrough)
    case .message(let message): try take(message)
    case .deduplication(let deduplication):
      hasDeduplications = true
      try require(deduplication.timetoken)
    case .end(let end):
      guard end.messageCount == messageCount, end.lineCount == lineCount else {
        throw LineFault(
          "counts \(end.messageCount) messages in \(end.lineCount) lines, and before it are "
            + "\(messageCount) in \(lineCount)")
      }
      self.end = end
    }
    lineCount += 1
  }

  private mutating func take(_ moment: ExportMoment) throws(LineFault) {
    guard moment.highWater <= latest else {
      throw LineFault("has a timetoken more than 366 days ahead of this machine's clock")
    }
    highWater = max(highWater, moment.highWater)
  }

  private mutating func take(_ message: ExportedMessage) throws(LineFault) {
    guard !hasDeduplications, message.timetoken > lastTimetoken else {
      throw LineFault("has a message out of its order")
    }
    try require(message.timetoken)
    try requireChosen(message)
    guard message.payload.count <= configuration.maximumPayloadByteCount else {
      throw LineFault(
        "has a payload of \(message.payload.count) bytes, the limit is "
          + "\(configuration.maximumPayloadByteCount)")
    }
    let headerByteCount = HeaderCoding.byteCount(of: message.headers)
    guard headerByteCount <= configuration.maximumHeaderByteCount else {
      throw LineFault(
        "has \(headerByteCount) bytes of headers, the limit is "
          + "\(configuration.maximumHeaderByteCount)")
    }
    lastTimetoken = message.timetoken
    messageCount += 1
    hasMessages = true
  }

  private func require(_ timetoken: Int64) throws(LineFault) {
    guard timetoken <= highWater else {
      throw LineFault("has a timetoken greater than highWater")
    }
  }

  /// `after` and `channels` tell whether exports overlap, so messages must keep to them.
  private func requireChosen(_ message: ExportedMessage) throws(LineFault) {
    guard let header, message.timetoken > header.after ?? 0,
      header.channels?.contains(where: { Channel(stored: $0) == message.channel }) != false
    else { throw LineFault("has a message outside the selection of the first line") }
  }

  private func requireBeforeMessages() throws(LineFault) {
    guard !hasMessages, !hasDeduplications else { throw LineFault("comes after its messages") }
  }
}

extension EngineError {
  init(line number: Int, of path: FilePath, _ fault: LineFault) {
    self.init(
      .invalidFile, "\(path): line \(number) \(fault.reason)",
      hint: "nothing was imported; copy the file again, or correct the line")
  }
}
