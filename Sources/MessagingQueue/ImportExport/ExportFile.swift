internal import FileLayer
internal import GRDB
internal import SystemPackage
internal import VaultCrypto

/// The file `FILE.partial` of an export, which an earlier attempt can have begun; it gets its final
/// name when it is complete.
final class ExportFile {
  /// Lines of an export have no limit of their own, as the database has limits.
  private static let maximumLineByteCount = 1 << 30

  let path: FilePath
  private let partial: FilePath
  private let fileSystem = LinuxFileSystem()
  private let lock: FileLock
  private let file: ExchangeFile
  /// Whether the export is complete, and only the final name is missing.
  private(set) var isWhole = false

  /// Opens the file, or makes it.
  ///
  /// - Throws: `alreadyExists` if the final name is taken; `foreignFile` if another user could have
  ///   made or could read `FILE.partial`; `busy` while another export writes it.
  init(_ path: FilePath) throws(EngineError) {
    self.path = path
    partial = FilePath(path.string + ".partial")
    try Self.requireFree(path, fileSystem)
    let lock: FileLock?
    do throws(FileError) {
      lock = try fileSystem.lock(partial, wait: false)
    } catch {
      throw EngineError(file: partial, error, "cannot be made")
    }
    guard let lock else { throw EngineError(.busy, "another export is writing \(partial)") }
    self.lock = lock
    // The earlier export can have finished before this one got the lock.
    try Self.requireFree(path, fileSystem)
    file = try ExchangeFile(continuing: partial)
  }

  func write(_ lines: [UInt8]) throws(EngineError) { try file.append(lines) }

  /// Gives the file its final name, durably.
  func finish() throws(EngineError) {
    try file.synchronize()
    do throws(FileError) {
      try fileSystem.rename(partial, toFree: path)
      try fileSystem.synchronizeDirectory(path.containingDirectory)
    } catch {
      throw error.errno == .fileExists
        ? Self.exists(path) : EngineError(file: path, error, "cannot get its name")
    }
    lock.release()
  }

  /// Reads the file, cuts off what the export must write again, and returns where to continue.
  ///
  /// Three parts are cut off: a line that a kill or a power cut left unfinished, lines after the
  /// last message, which belong to a lost snapshot, and everything from the first line on that an
  /// import would refuse.
  ///
  /// A complete file of an older state of the database is continued, too.
  ///
  /// - Throws: `alreadyExists` if the file is an export of other messages, or if it lacks one that
  ///   the database has; it is then unchanged.
  func findPlace(of selection: MessageSelection, in db: Database) throws -> ExportPlace {
    let state = try ExportState(db)
    let channels = try ChannelExport.all(selection.channels, db)
    let messages = try selection.messages(["timetoken", "channel_id", "payload"], in: db)
    var stored = try messages.next()
    var place = ExportPlace()
    var kept = (place: place, byteCount: 0)
    var rules = ImportCheck(.withoutLimits, latest: state.moment.highWater)
    reading: while case .line(let line) = try file.next(maximumByteCount: Self.maximumLineByteCount),
      let record = try? ExchangeRecord(line)
    {
      try require(record, place, selection, state)
      do throws(LineFault) {
        try rules.add(record)
      } catch {
        break reading
      }
      switch record {
      case .export(let header):
        place.header = header
        place.moment = header.moment
      case .resumed(let moment): place.moment = moment
      case .message(let message):
        // The database gets no other messages so far back, unless an older copy takes its place.
        if let row = stored, row[0] <= message.timetoken {
          let channel = channels[row[1]]?.exported.channel
          guard row[0] == message.timetoken, channel == message.channel,
            try row.bytes(at: 2) == message.payload
          else { throw lacks(row[0]) }
          stored = try messages.next()
        } else {
          place.hasRemovedMessages = true
        }
        place.lastTimetoken = message.timetoken
        place.messageCount += 1
      case .end(let end):
        isWhole =
          try end.sha256 == place.digest.finalized().hexadecimal
          && place.isUnchanged(in: state) && stored == nil
        break reading
      case .channel, .consumer, .deduplication: break
      }
      place.lineCount += 1
      try place.digest.update(line + [0x0A])
      if case .message = record { kept = (place, file.byteCount) }
    }
    if place.header == nil { try requireBeginning() }
    if isWhole { return place }
    kept.place.digest = try file.digest(ofFirst: kept.byteCount)
    try file.cut(to: kept.byteCount)
    return kept.place
  }

  /// Throws unless a line belongs to this database, to this state or an earlier one, and to this
  /// selection.
  private func require(
    _ record: ExchangeRecord, _ place: ExportPlace, _ selection: MessageSelection,
    _ state: ExportState
  ) throws(EngineError) {
    var moment: ExportMoment?
    if case .resumed(let later) = record, place.header != nil { moment = later }
    if case .export(let header) = record, place.lineCount == 0 {
      guard header.source == state.source else { throw EngineError.exportOfAnotherDatabase }
      let channels = header.channels.map { Set($0.map { Channel(stored: $0) }) }
      guard channels == selection.channels, header.after == selection.after?.rawValue else {
        throw EngineError(
          .alreadyExists, "\(partial) is an unfinished export of other messages",
          hint: "remove it, or use another file name")
      }
      moment = header.moment
    }
    if let moment, moment.highWater > state.moment.highWater {
      throw EngineError(
        .alreadyExists, "\(partial) is an unfinished export of a later state of this database",
        hint: "run datavault queue verify to see whether the database is an older copy")
    }
  }

  private func lacks(_ timetoken: Int64) -> EngineError {
    EngineError(
      .alreadyExists,
      "\(partial) lacks message \(timetoken), which the database did not have when it was written",
      hint:
        "the database is an older copy, or was one that was accepted; remove the file and export again"
    )
  }

  /// Only the torn first line of an export can be overwritten, as other programs use such names
  /// too.
  private func requireBeginning() throws(EngineError) {
    let beginning = Array(#"{"record":"export","version":"#.utf8)
    try file.rewind()
    let found = try file.read(upTo: beginning.count)
    guard beginning.starts(with: found) else {
      throw EngineError(
        .alreadyExists, "\(partial) is not an unfinished export of messages",
        hint: "move it away, or use another file name")
    }
  }

  private static func requireFree(
    _ path: FilePath, _ fileSystem: LinuxFileSystem
  ) throws(EngineError) {
    let status: FileStatus?
    do throws(FileError) {
      status = try fileSystem.status(of: path)
    } catch {
      throw EngineError(file: path, error, "cannot be examined")
    }
    if status != nil { throw exists(path) }
  }

  private static func exists(_ path: FilePath) -> EngineError {
    EngineError(.alreadyExists, "\(path) exists", hint: "use another file name, or remove the file")
  }
}

extension EngineConfiguration {
  /// Messages in a database are exported whatever the limits are now.
  fileprivate static var withoutLimits: EngineConfiguration {
    var configuration = EngineConfiguration()
    configuration.maximumPayloadByteCount = .max
    configuration.maximumHeaderByteCount = .max
    return configuration
  }
}
