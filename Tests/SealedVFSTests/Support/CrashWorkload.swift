import FaultVFS
import FileLayer
import SealedVFS
import SystemPackage

/// Something done to a database, with a mark of the number of rows after each step that returned.
enum CrashWorkload: String, CaseIterable, Sendable {
  case logCommits, journalCommits, spills, checkpoints, twoDatabases, keyChange

  /// How many rows a commit adds.
  var size: Int { self == .spills ? 120 : 6 }

  /// What was done to the disk, and what lay there before.
  struct Record {
    let events: [FileEvent]
    let initial: [FilePath: [UInt8]]
  }

  func record(_ place: Place) throws -> Record {
    let recorder = FileRecorder()
    let vfs = RecordingVFS(recorder)
    var initial: [FilePath: [UInt8]] = [:]
    if self == .keyChange {
      try place.makeDatabase(rowCount: 40, mode: "WAL")
      for (name, bytes) in try place.contents() {
        initial[place.directory.appending(name)] = bytes
      }
      try SealedVFS.reencrypt(
        place.database, from: Place.key(), to: Place.key(Place.otherKeyBytes), over: vfs.name,
        fileSystem: RecordingFileSystem(recorder: recorder))
      recorder.mark("40")
    } else {
      let registrations = (
        try place.register(over: vfs.name),
        try SealedVFS.register(key: Place.key(), at: place.second, over: vfs.name)
      )
      try run(try place.open(), place, recorder)
      withExtendedLifetime(registrations) {}
    }
    return Record(events: recorder.events, initial: initial)
  }

  private func run(_ connection: Connection, _ place: Place, _ recorder: FileRecorder) throws {
    // Without a log, FULL leaves a commit's last step, the journal's removal, to the system: EXTRA.
    let hasLog = self != .journalCommits && self != .twoDatabases
    try connection.run(
      hasLog
        ? "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"
        : "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA")
    if self == .checkpoints { try connection.run("PRAGMA wal_autocheckpoint = 8") }
    if self == .spills { try connection.run("PRAGMA cache_size = 5") }
    if self == .twoDatabases {
      try connection.run("ATTACH '\(place.second)' AS s; PRAGMA s.synchronous = EXTRA")
      try connection.run("CREATE TABLE s.u (id INTEGER PRIMARY KEY, text TEXT)")
    }
    for round in 0..<(self == .spills ? 3 : 8) {
      try connection.run("BEGIN")
      try connection.fill(size, from: round * size + 1)
      if self == .spills { try connection.run("UPDATE t SET text = text || '.'") }
      if self == .twoDatabases {
        try connection.run("INSERT INTO s.u SELECT * FROM t WHERE id > \(round * size)")
      }
      try connection.run("COMMIT")
      recorder.mark("\((round + 1) * size)")
    }
  }
}

extension Place {
  /// A database beside the first.
  var second: FilePath { directory.appending("second.db") }
}
