import FaultVFS
import Testing

/// Pages that are read before SQLite asks for them.
@Suite struct ReadAheadTests {
  @Test(arguments: ["DELETE", "WAL"])
  func `a scan sees commits made since the last scan, wherever that scan ended`(
    mode: String
  ) throws {
    let place = try TemporaryDatabase.made(rowCount: 600, mode: mode)
    try place.register()
    let (reader, writer) = (try place.open(), try place.open())
    try reader.run("PRAGMA cache_size = 1")
    for round in 0..<60 {
      let last = 10 * (round + 1)
      _ = try reader.first("SELECT sum(length(text)) FROM t WHERE id <= \(last)")
      try writer.run("UPDATE t SET text = 'round \(round) ' || text")
      if mode == "WAL" { try writer.run("PRAGMA wal_checkpoint(TRUNCATE)") }
      let found = try reader.first("SELECT count(*) FROM t WHERE text LIKE 'round \(round) %'")
      #expect(found == "600")
    }
  }

  @Test func `a checkpoint copies pages that another connection wrote since the last one`() throws {
    let place = try TemporaryDatabase.made(rowCount: 600, mode: "WAL")
    try place.register()
    let (writer, checkpointer) = (try place.open(), try place.open())
    try writer.run("PRAGMA wal_autocheckpoint = 0; UPDATE t SET text = text || text")
    for round in 0..<20 {
      // The log restarts each time: new frames replace old ones, and old ones follow them.
      try writer.run(
        "UPDATE t SET text = 'round \(round) ' || substr(text, 1, 300) WHERE id <= 150")
      #expect(try checkpointer.first("PRAGMA wal_checkpoint(RESTART)")?.hasPrefix("0") == true)
      let written = try place.afterKill()
      try written.write([], to: written.log)
      #expect(
        try written.query("SELECT count(*) FROM t WHERE text LIKE 'round \(round) %'") == "150")
    }
  }
}
