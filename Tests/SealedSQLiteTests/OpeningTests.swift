import Foundation
import GRDB
import SealedSQLite
import SealedVFS
import SystemPackage
import Testing
import VaultCrypto

@Suite struct OpeningTests {
  @Test func `rows written through an unmodified pool are there after reopening`() throws {
    try withTemporaryDirectory { directory in
      let path = directory.appending("messages.db")
      let key = SecretBytes(copying: [UInt8](repeating: 7, count: 32))
      do {
        let pool = try SealedDatabase.openPool(at: path, key: key)
        try pool.write { db in
          try db.execute(sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
          for index in 0..<500 {
            try db.execute(
              sql: "INSERT INTO t (text) VALUES (?)", arguments: ["canary-canary \(index)"])
          }
        }
        #expect(try pool.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM t") } == 500)
        try pool.close()
      }
      let pool = try SealedDatabase.openPool(at: path, key: key, creation: .never)
      #expect(try pool.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM t") } == 500)
      #expect(
        try pool.read { db in try String.fetchOne(db, sql: "PRAGMA integrity_check") } == "ok")
      try pool.close()
      let bytes = try Data(contentsOf: URL(fileURLWithPath: path.string))
      #expect(bytes.range(of: Data("canary".utf8)) == nil)
      #expect(bytes.count % 4096 == 0)
    }
  }
}
