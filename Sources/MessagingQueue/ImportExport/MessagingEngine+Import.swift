internal import FileLayer
internal import GRDB
public import SystemPackage

/// The result of an import, including earlier attempts.
public struct ImportReport: Sendable, Hashable {
  /// Messages that kept their timetokens.
  public internal(set) var keptCount = 0
  /// Messages that got new timetokens, as the database had already assigned greater ones.
  public internal(set) var renumberedCount = 0
  /// Lines that an earlier attempt had stored.
  public internal(set) var resumedAfterLine = 0
  /// Whether the file had already been imported, and nothing was changed.
  public internal(set) var wasAlreadyImported = false

  /// All messages of the file.
  public var messageCount: Int { keptCount &+ renumberedCount }
}

extension MessagingEngine {
  /// Imports the messages of a file of ``exportMessages(_:to:progress:)``, with the state of their
  /// consumers: `docs/reference/message-export.md`, "Import".
  ///
  /// The whole file is checked before anything is changed. It is then stored in transactions of
  /// about 1,000 lines, each durable. If the process is killed, the same call continues; importing
  /// a file again changes nothing. A message keeps its timetoken if that is greater than all that
  /// this database has assigned.
  ///
  /// - Parameter progress: called with the bytes read, out of twice the file's size, on the
  ///   import's own thread.
  /// - Throws: `fileMissing`, `invalidFile` with the number of the line: nothing was changed.
  ///   `alreadyExists` for an export of this database, or of messages that were imported before.
  ///   After `busy`, `diskFull`, `inputOutput`, `stopped`, `vaultLocked`, `damaged` or
  ///   `outcomeUnknown` the call can be repeated.
  public func importMessages(
    from path: FilePath,
    progress: @escaping @Sendable (WorkProgress) -> Void = { _ in }
  ) async throws(EngineError) -> ImportReport {
    try requireRunning()
    try requireOnlyHome(
      during: "importing", hint: "publish the messages, or import before the home is replicated")
    let checked = try await onBlockingThread("datavault.import") {
      [tables] () throws(EngineError) in
      try ImportCheck.run(
        ExchangeFile(regularAt: path), tables.configuration, now: tables.time.now,
        progress: progress)
    }
    var importProgress = try await commits.run(during: "importing messages") { db in
      try ImportProgress.begin(checked, db)
    }
    var report = ImportReport()
    report.resumedAfterLine = importProgress.lineCount
    report.wasAlreadyImported = importProgress.isComplete
    if !importProgress.isComplete {
      let lines = CheckedLines(of: path, checked, tables.configuration)
      try await lines.begin(after: importProgress)
      while let batch = try await lines.nextBatch(progress: progress) {
        try requireRunning()
        let before = importProgress
        do {
          importProgress = try await commits.run(
            during: "importing messages", byteCount: batch.byteCount
          ) { [tables] db in
            try tables.store(batch, of: checked, after: before, in: db)
          }
        } catch  where [.queueFull, .diskFull].contains(error.code) {
          throw EngineError(
            error.code, "\(error.message); \(before.lineCount) lines of \(path) are imported",
            hint: "\(error.hint ?? "make space"); then import the file again, which continues",
            underlying: error.underlying)
        }
      }
    }
    report.keptCount = importProgress.keptCount
    report.renumberedCount = importProgress.renumberedCount
    return report
  }
}

extension MessagingEngine {
  /// Throws if there is no file to import; for callers that would otherwise start an engine first.
  ///
  /// - Throws: `fileMissing`, `invalidArgument`, `inputOutput`.
  package static func requireFileToImport(at path: FilePath) throws(EngineError) {
    _ = try ExchangeFile(regularAt: path)
  }
}

/// The lines of a checked file, read on a thread that can wait for the disk.
private actor CheckedLines: BlockingActor {
  let executor = BlockingExecutor(label: "datavault.import")
  private let path: FilePath
  private let checked: CheckedImport
  private let configuration: EngineConfiguration
  private var file: ExchangeFile?
  private var chain = LineChain()
  private var lineCount = 0

  init(of path: FilePath, _ checked: CheckedImport, _ configuration: EngineConfiguration) {
    self.path = path
    self.checked = checked
    self.configuration = configuration
  }

  /// Opens the file, after the lines that are already stored.
  func begin(after importProgress: ImportProgress) throws(EngineError) {
    let file = try ExchangeFile(regularAt: path)
    while lineCount < importProgress.lineCount, try next(of: file) != nil {}
    guard lineCount == importProgress.lineCount, chain.digest == importProgress.digest else {
      throw EngineError(
        .invalidFile, "\(path) differs from the file whose import has begun",
        hint: "import that file again: \(importProgress.lineCount) of its lines are stored")
    }
    self.file = file
  }

  /// The next lines to store; nil after the last.
  ///
  /// - Parameter progress: receives the bytes read by the check and by the import.
  /// - Throws: `invalidFile` if the file is not the one that was checked. That shows at the latest
  ///   at its last line, without which no import is complete.
  func nextBatch(progress: (WorkProgress) -> Void) throws(EngineError) -> ImportBatch? {
    guard let file else { return nil }
    var batch = ImportBatch()
    while !batch.isFull {
      let line: [UInt8]?
      do throws(EngineError) {
        line = try next(of: file)
      } catch {
        throw error.code == .invalidFile ? wasChanged : error
      }
      guard let line else {
        if lineCount < checked.lineCount { throw wasChanged }
        break
      }
      guard let record = try? ExchangeRecord(line),
        lineCount < checked.lineCount || chain.digest == checked.digest
      else { throw wasChanged }
      batch.records.append(record)
      batch.byteCount += line.count
    }
    batch.digest = chain.digest
    let total = 2 * checked.byteCount
    progress(
      WorkProgress(completed: min(checked.byteCount + file.byteCount, total), total: total))
    return batch.records.isEmpty ? nil : batch
  }

  private func next(of file: ExchangeFile) throws(EngineError) -> [UInt8]? {
    guard let line = try ImportCheck.next(file, configuration, number: lineCount + 1) else {
      return nil
    }
    lineCount += 1
    try chain.add(line)
    return line
  }

  private var wasChanged: EngineError {
    EngineError(
      .invalidFile, "\(path) was changed while it was imported",
      hint: "restore the file and import it again: some of its lines are stored")
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
  /// Stores a batch and the import's new progress.
  func store(
    _ batch: ImportBatch, of file: CheckedImport, after before: ImportProgress, in db: Database
  ) throws -> ImportProgress {
    var importer = try MessageImporter(self, before, highWater: file.highWater, db)
    for record in batch.records { try importer.store(record) }
    var importProgress = try importer.finish(notifier)
    importProgress.lineCount += batch.records.count
    importProgress.digest = batch.digest
    try importProgress.store(file.header.id, replacing: before, db)
    return importProgress
  }
}
