import FaultVFS
import FileLayer
import FileRecording
import SealedVFS
import VaultCrypto

/// A workload on a database whose every step is recorded.
enum CrashWorkload: String, CaseIterable, Sendable {
  case creation, creationInLog
  case log, logSpills, checkpoints, logVacuum, normalLog
  case deletedJournal, truncatedJournal, persistentJournal, journalSpills, journalVacuum
  case incrementalVacuum, modeChanges, superJournal
  case publish, lease, keyChange
  case together, settling, retention, ownRows

  /// How far a state can be behind the last acknowledgement: only if durability was waived.
  var canForget: Bool { self == .normalLog }

  /// Whether plain SQLite can run the same workload.
  var runsOnPlainSQLite: Bool { self != .keyChange }

  func record(_ form: FileForm) async throws -> RecordedWork {
    let recording = try WorkRecording(form)
    switch self {
    case .together, .settling, .retention, .ownRows:
      return try await EngineLifeWork(recording).record(self)
    case .publish, .lease: return try EngineWork(recording).record(self)
    case .keyChange: return try recordKeyChange(recording)
    default: return try recordStatements(recording)
    }
  }

  private func recordStatements(_ recording: WorkRecording) throws -> RecordedWork {
    let starts = self == .creation || self == .creationInLog ? [] : Self.start
    let registrations = [recording.database, recording.second].map { path in
      Result { try recording.form.register(path, over: recording.vfs) }
    }
    return try withExtendedLifetime(registrations) {
      do {
        let connection = try recording.form.open(recording.database, over: recording.vfs)
        if !starts.isEmpty {
          try connection.run("PRAGMA journal_mode = DELETE")
          for statement in creationSettings + starts { try connection.run(statement) }
        }
      }
      try recording.begin(hasFiles: !starts.isEmpty)
      let connection = try recording.form.open(recording.database, over: recording.vfs)
      for setting in settings(recording) { try connection.run(setting) }
      try recording.run(connection, steps)
      return recording.finish(attached: self == .superJournal ? recording.second : nil)
    }
  }

  private func recordKeyChange(_ recording: WorkRecording) throws -> RecordedWork {
    let newKey = [UInt8](repeating: 0x2A, count: 32)
    let registration = try recording.form.register(recording.database, over: "unix")
    try withExtendedLifetime(registration) {
      let connection = try recording.form.open(recording.database, over: "unix")
      try connection.run("PRAGMA journal_mode = WAL")
      for statement in Self.start { try connection.run(statement) }
      try recording.acknowledge(connection)
      try recording.acknowledge(connection)  // the change leaves the contents as they are
    }
    try recording.begin()
    try SealedVFS.reencrypt(
      recording.database, from: SecretBytes(copying: FileForm.keyBytes),
      to: SecretBytes(copying: newKey), over: recording.vfs,
      fileSystem: RecordingFileSystem(recorder: recording.recorder))
    recording.recorder.mark("1")
    var work = recording.finish()
    work.keys = [FileForm.keyBytes, newKey]
    return work
  }
}
