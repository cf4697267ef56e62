internal import FileLayer
internal import GRDB
public import SystemPackage

extension MessagingEngine {
  /// Writes messages, and what their consumers have done with them, into a file of JSON lines:
  /// `docs/reference/message-export.md`.
  ///
  /// **The file is plaintext.** It has mode 0600 and the name `PATH.partial`, and gets its final
  /// name when it is complete; on return it is on the disk. If the process is killed or the call
  /// fails, the same call continues after the last complete message. The export reads one snapshot,
  /// while other callers work.
  ///
  /// - Parameters:
  ///   - selection: default: all messages.
  ///   - progress: called from time to time with the messages written, on the export's own thread.
  /// - Throws: `alreadyExists`; `foreignFile` if `PATH.partial` is not this user's own;
  ///   `channelMissing`; `busy` while another export writes the same file; `diskFull`,
  ///   `inputOutput`, `stopped`, `vaultLocked`, `damaged`.
  public nonisolated func exportMessages(
    _ selection: MessageSelection = MessageSelection(), to path: FilePath,
    progress: @escaping @Sendable (ExchangeProgress) -> Void = { _ in }
  ) async throws(EngineError) -> ExportReport {
    try await ExchangeWorker().export(selection, of: running().tables, to: path, progress: progress)
  }

  /// Passes the same lines to a closure, in chunks of whole lines of about 256 KiB; it cannot be
  /// resumed.
  ///
  /// - Parameter write: called on a thread that can block.
  /// - Throws: the ``EngineError`` of `write`, and the errors of
  ///   ``exportMessages(_:to:progress:)``.
  public nonisolated func exportMessages(
    _ selection: MessageSelection = MessageSelection(),
    progress: @escaping @Sendable (ExchangeProgress) -> Void = { _ in },
    write: @escaping @Sendable ([UInt8]) throws -> Void
  ) async throws(EngineError) -> ExportReport {
    try await ExchangeWorker().export(
      selection, of: running().tables, progress: progress, write: write)
  }
}

/// Reads and writes files of messages on a thread that can wait for the disk.
actor ExchangeWorker {
  private let executor = BlockingExecutor(label: "datavault.exchange")
  private var reading: ImportReading?

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  func export(
    _ selection: MessageSelection, of tables: EngineDatabase, to path: FilePath,
    progress: @Sendable (ExchangeProgress) -> Void
  ) throws(EngineError) -> ExportReport {
    let file = try ExportFile(path)
    let state = try tables.read(during: "exporting messages") { db in try ExportState.read(db) }
    let place = try file.findPlace(of: selection, in: state)
    if file.isWhole {
      var report = ExportReport()
      (report.messageCount, report.resumedAfter) = (
        Int(place.messageCount), Int(place.messageCount)
      )
      try file.finish()
      return report
    }
    let report = try export(selection, of: tables, from: place, progress: progress) {
      try file.write($0)
    }
    try file.finish()
    return report
  }

  func export(
    _ selection: MessageSelection, of tables: EngineDatabase,
    progress: @Sendable (ExchangeProgress) -> Void, write: @Sendable ([UInt8]) throws -> Void
  ) throws(EngineError) -> ExportReport {
    try export(selection, of: tables, from: ExportPlace(), progress: progress, write: write)
  }

  private func export(
    _ selection: MessageSelection, of tables: EngineDatabase, from place: ExportPlace,
    progress: (ExchangeProgress) -> Void, write: ([UInt8]) throws -> Void
  ) throws(EngineError) -> ExportReport {
    try tables.read(during: "exporting messages") { db in
      try withoutActuallyEscaping(progress) { progress in
        try withoutActuallyEscaping(write) { write in
          var exporter = try MessageExporter(
            db, selection, from: place, progress: progress, write: write)
          return try exporter.run()
        }
      }
    }
  }

  func check(
    _ path: FilePath, _ tables: EngineDatabase, progress: (ExchangeProgress) -> Void
  ) throws(EngineError) -> CheckedImport {
    try ImportCheck.run(
      ExchangeFile(regularAt: path), tables.configuration, now: tables.time.now,
      progress: progress)
  }

  /// Opens a checked file after the lines that are already stored.
  func beginImport(
    _ path: FilePath, _ checked: CheckedImport, after importProgress: ImportProgress,
    _ configuration: EngineConfiguration
  ) throws(EngineError) {
    let reading = ImportReading(try ExchangeFile(regularAt: path), configuration, checked)
    while reading.lineCount < importProgress.lineCount, try reading.next() != nil {}
    guard reading.lineCount == importProgress.lineCount,
      reading.chain.digest == importProgress.digest
    else {
      throw EngineError(
        .invalidFile, "\(path) differs from the file whose import has begun",
        hint: "import that file again: \(importProgress.lineCount) of its lines are stored")
    }
    self.reading = reading
  }

  /// The next lines to store; nil after the last.
  func nextBatch(
    progress: (ExchangeProgress) -> Void
  ) throws(EngineError) -> ImportBatch? {
    guard let reading else { return nil }
    var batch = ImportBatch()
    while !batch.isFull, let record = try reading.nextRecord(in: &batch) {
      batch.records.append(record)
    }
    batch.digest = reading.chain.digest
    progress(reading.progress)
    return batch.records.isEmpty ? nil : batch
  }
}
