import Testing

/// Pages that were fetched before SQLite asked for them.
@Suite struct ReadAheadTests {
  @Test(arguments: ["DELETE", "WAL"])
  func `a scan sees what others committed since the last one, wherever that one ended`(
    mode: String
  ) throws {
    let place = try Place()
    try place.makeDatabase(rowCount: 600, mode: mode)
    let registration = try place.register()
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
    withExtendedLifetime(registration) {}
  }
}
