internal import GRDB
public import SystemPackage

/// What an import has come to, earlier attempts included.
public struct ImportReport: Sendable, Hashable {
  /// Messages that kept their timetokens.
  public internal(set) var keptCount = 0
  /// Messages that got new ones, as the database had given out greater ones before.
  public internal(set) var renumberedCount = 0
  /// Lines that an earlier attempt had stored.
  public internal(set) var resumedAfterLine = 0
  /// Whether the file had been imported before, and nothing was changed.
  public internal(set) var wasAlreadyImported = false

  /// All messages of the file.
  public var messageCount: Int { keptCount + renumberedCount }
}

extension MessagingEngine {
  /// Takes the messages of a file of ``exportMessages(_:to:progress:)`` into this database, with what
  /// their consumers have done with them: `docs/reference/message-export.md`, "Import".
  ///
  /// The whole file is looked at before anything is changed. It is then stored in transactions of some
  /// 1,000 lines, each durable; killed in the midst, the same call goes on, and a file that was imported
  /// changes nothing. Timetokens are kept while they are greater than all that were given out here.
  ///
  /// - Parameter progress: told of bytes read, of twice the file, on a thread of the import's own.
  /// - Throws: `fileMissing`, `invalidFile` with the number of the line: nothing was changed;
  ///   `alreadyExists` for an export of this database, or of messages that came before; `busy`,
  ///   `diskFull`, `inputOutput`, `stopped`, `vaultLocked`, `damaged`, `outcomeUnknown`: call it again.
  public nonisolated func importMessages(
    from path: FilePath,
    progress: @escaping @Sendable (ExchangeProgress) -> Void = { _ in }
  ) async throws(EngineError) -> ImportReport {
    let tables = try running().tables
    let worker = ExchangeWorker()
    let checked = try await worker.check(path, tables, progress: progress)
    var ledger = try await commits.run(during: "importing messages") { db in
      try ImportProgress.begin(checked, db)
    }
    var report = ImportReport()
    report.resumedAfterLine = Int(ledger.lineCount)
    report.wasAlreadyImported = ledger.isComplete
    if !ledger.isComplete {
      try await worker.beginImport(path, checked, after: ledger, tables.configuration)
      while let batch = try await worker.nextBatch(progress: progress) {
        _ = try running()
        let before = ledger
        ledger = try await commits.run(
          during: "importing messages", byteCount: batch.byteCount
        ) { db in
          try tables.store(batch, of: checked, after: before, in: db)
        }
      }
    }
    report.keptCount = Int(ledger.keptCount)
    report.renumberedCount = Int(ledger.renumberedCount)
    return report
  }
}

extension MessagingEngine {
  /// Whether there is a file at all that could be imported; for who would make an engine for it.
  ///
  /// - Throws: `fileMissing`, `invalidArgument`, `inputOutput`.
  package static func requireFileToImport(at path: FilePath) throws(EngineError) {
    _ = try ExchangeFile(regularAt: path)
  }
}

/// Lines that are stored together.
struct ImportBatch: Sendable {
  private static let maximumCount = 1000
  private static let maximumByteCount = 1 << 20

  var records: [ExchangeRecord] = []
  var byteCount = 0
  /// The chained digest of all lines up to the last of these.
  var digest: [UInt8] = []

  var isFull: Bool { records.count >= Self.maximumCount || byteCount >= Self.maximumByteCount }
}

extension EngineDatabase {
  /// Stores a batch, and how far the file has come with it.
  func store(
    _ batch: ImportBatch, of file: CheckedImport, after before: ImportProgress, in db: Database
  ) throws -> ImportProgress {
    var importer = try MessageImporter(self, before, highWater: file.highWater, db)
    for record in batch.records { try importer.store(record) }
    var ledger = try importer.finish(notifier)
    ledger.lineCount += Int64(batch.records.count)
    ledger.digest = batch.digest
    try ledger.store(file.header.id, replacing: before, db)
    return ledger
  }
}

/// A file whose lines are being stored; one task at a time has it, on its worker.
final class ImportReading {
  let file: ExchangeFile
  private let configuration: EngineConfiguration
  private let checked: CheckedImport
  private(set) var chain = LineChain()
  private(set) var lineCount: Int64 = 0

  init(_ file: ExchangeFile, _ configuration: EngineConfiguration, _ checked: CheckedImport) {
    self.file = file
    self.configuration = configuration
    self.checked = checked
  }

  /// What was read when the file was checked, and now.
  var progress: ExchangeProgress {
    let total = 2 * checked.byteCount
    return ExchangeProgress(
      completed: min(checked.byteCount + file.byteCount, total), total: total)
  }

  /// The next record, whose line is counted in a batch.
  ///
  /// - Throws: `invalidFile` if the file is no longer the one that was checked; at the latest for its last
  ///   line, without which no import is complete.
  func nextRecord(in batch: inout ImportBatch) throws(EngineError) -> ExchangeRecord? {
    let line: [UInt8]?
    do throws(EngineError) {
      line = try next()
    } catch {
      throw error.code == .invalidFile ? wasChanged : error
    }
    guard let line else {
      if lineCount < checked.lineCount { throw wasChanged }
      return nil
    }
    guard let record = try? ExchangeRecord(line),
      lineCount < checked.lineCount || chain.digest == checked.digest
    else { throw wasChanged }
    batch.byteCount += line.count
    return record
  }

  private var wasChanged: EngineError {
    EngineError(
      .invalidFile, "\(file.path) was changed while it was imported",
      hint: "put it back as it was, and go on: a part of its lines is stored")
  }

  func next() throws(EngineError) -> [UInt8]? {
    guard let line = try ImportCheck.next(file, configuration, number: lineCount + 1) else {
      return nil
    }
    lineCount += 1
    try chain.add(line)
    return line
  }
}
