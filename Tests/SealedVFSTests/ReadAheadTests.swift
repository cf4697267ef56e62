import FaultVFS
import SealedVFS
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

  @Test(arguments: ["DELETE", "WAL"])
  func `no call on the underlying VFS transfers more bytes than "unix" can`(mode: String) throws {
    let layer = LayerVFS()
    let place = TemporaryDatabase()
    let connection = try place.connect(over: layer.name)
    try connection.run("PRAGMA journal_mode = \(mode); PRAGMA wal_autocheckpoint = 0")
    try connection.fill(3000)
    try connection.run("PRAGMA cache_size = 3; SELECT sum(length(text)) FROM t")
    let written = try place.afterKill()
    _ = try SealedVFS.verify(written.database, key: TemporaryDatabase.key(), over: layer.name)
    try connection.run("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    try SealedVFS.reencrypt(
      place.database, from: TemporaryDatabase.key(),
      to: TemporaryDatabase.key(TemporaryDatabase.otherKeyBytes), over: layer.name)
    // `assert( cnt==(cnt&0x1ffff) )` of seekAndRead in os_unix.c.
    #expect((100_000...0x1FFFF).contains(layer.longestTransfer))
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
