import FaultVFS
import SealedVFS
import SystemPackage
import TestSupport
import Testing

/// Random damage to the files gives the right rows, fewer commits or an error, never a wrong row.
@Suite struct DamagedBytesTests {
  enum Target: String, CaseIterable, Sendable { case database, log, both }

  @Test(arguments: Target.allCases)
  func `damaged bytes never make a wrong row`(target: Target) throws {
    let (place, connection) = try TemporaryDatabase.reopened(rowCount: 100, mode: "WAL")
    try connection.run("PRAGMA wal_autocheckpoint = 0")
    let rows = try connection.run("SELECT id || text FROM t ORDER BY id")
    var states = [rows]
    for round in 0..<5 {
      try connection.run("UPDATE t SET text = text || '\(round)' WHERE id % 7 = \(round)")
      states.append(try connection.run("SELECT id || text FROM t ORDER BY id"))
    }
    let image = try place.afterKill().contents()
    var random = SeededRandom(seed: 0x5EED)
    var (errors, fewer) = (0, 0)
    for _ in 0..<60 {
      let victim = TemporaryDatabase()
      for (name, bytes) in image { try victim.write(bytes, to: victim.directory.appending(name)) }
      for path in [victim.database, victim.log]
      where target == .both || (path == victim.log) == (target == .log) {
        try victim.change(path) { bytes in
          for _ in 0..<Int.random(in: 1...3, using: &random) {
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
              let index = Int.random(in: 0..<bytes.count, using: &random)
              bytes[index] ^= UInt8(1) << UInt8.random(in: 0..<8, using: &random)
            case 1:
              let start = Int.random(in: 0..<bytes.count - 600, using: &random)
              for index in start..<start + 512 { bytes[index] = 0 }
            case 2:
              // Copy a piece of the file over another.
              let from = Int.random(in: 0..<bytes.count - 4120, using: &random)
              let to = Int.random(in: 0..<bytes.count - 4120, using: &random)
              bytes.replaceSubrange(to..<to + 4120, with: Array(bytes[from..<from + 4120]))
            default: bytes.removeLast(Int.random(in: 1..<3000, using: &random))
            }
          }
        }
      }
      try victim.register()
      do {
        let found = try victim.open().run("SELECT id || text FROM t ORDER BY id")
        let isKnown = states.contains(found)
        #expect(isKnown, "rows that were never committed together")
        if found != states.last { fewer += 1 }
      } catch is SQLFailure {
        errors += 1
      }
    }
    // The damage must have had an effect.
    #expect(errors + fewer > (target == .database ? 5 : 20))
    if target == .log { #expect(fewer > 0) }
  }

  @Test func `a connection still works after a read failed at a damaged page`() throws {
    let place = try TemporaryDatabase.made(rowCount: 300)
    try place.change(place.database) { $0[4096 * 9 + 5] ^= 1 }
    let connection = try place.connect()
    #expect(throws: SQLFailure.self) { try connection.run("SELECT text FROM t") }
    #expect(try connection.first("SELECT text FROM t WHERE id = 1")?.hasPrefix("canary 1 ") == true)
    #expect(place.fault?.pageNumber == 10)
    // A write to another page works, and the damaged page stays damaged.
    try connection.run("UPDATE t SET text = 'new' WHERE id = 1")
    #expect(try connection.first("SELECT text FROM t WHERE id = 1") == "new")
  }
}
