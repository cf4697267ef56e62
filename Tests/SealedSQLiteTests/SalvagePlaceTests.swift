import Foundation
import SealedSQLite
import SealedVFS
import SystemPackage
import TestSupport
import Testing

@Suite struct SalvagePlaceTests {
  @Test func `two salvages to one path exclude each other, and a killed one is removed`() throws {
    try withDatabase { directory, source in
      let destination = directory.appending("b.db")
      let side = open(directory.appending(".b.db.new").string, O_RDWR | O_CREAT, 0o600)
      #expect(flock(side, LOCK_EX | LOCK_NB) == 0)
      #expect(Foundation.write(side, "half a database", 15) == 15)
      let refused = #expect(throws: SealedDatabaseError.self) {
        try SealedDatabase.salvage(from: source, key: testKey(), to: destination)
      }
      #expect(refused?.code == .busy)
      close(side)
      let salvage = try SealedDatabase.salvage(
        from: source, key: testKey(), to: destination)
      #expect(salvage.isComplete)
      #expect(names(directory) == ["a.db", "b.db"])
    }
  }

  @Test func `a salvaged database has the source's permissions, also through a symbolic link`()
    throws
  {
    try withDatabase { directory, source in
      let link = directory.appending("link.db")
      #expect(symlink("a.db", link.string) == 0)
      for (name, named) in [("b.db", source), ("c.db", link)] {
        let destination = directory.appending(name)
        _ = try SealedDatabase.salvage(from: named, key: testKey(), to: destination)
        let attributes = try FileManager.default.attributesOfItem(atPath: destination.string)
        #expect(attributes[.posixPermissions] as? Int == 0o640, "\(name)")
      }
    }
  }

  @Test func `a salvage refuses a destination with a log beside it`() throws {
    try withDatabase { directory, source in
      #expect(
        FileManager.default.createFile(
          atPath: directory.appending("b.db-wal").string, contents: nil))
      let refused = #expect(throws: SealedDatabaseError.self) {
        try SealedDatabase.salvage(
          from: source, key: testKey(), to: directory.appending("b.db"))
      }
      #expect(refused?.code == .alreadyExists)
      #expect(refused?.message.contains("b.db-wal") == true)
      #expect(names(directory) == ["a.db", "b.db-wal"])
    }
  }

  private func withDatabase(_ body: (FilePath, FilePath) throws -> Void) throws {
    let fixture = try SalvageFixture.Variant.plain.fixture()
    let directory = ScratchFolder()
    let source = directory("a.db")
    try Data(fixture.bytes).write(to: URL(fileURLWithPath: source.string))
    #expect(chmod(source.string, 0o640) == 0)
    try body(directory.path, source)
  }

  private func names(_ directory: FilePath) -> [String]? {
    try? FileManager.default.contentsOfDirectory(atPath: directory.string).sorted()
  }
}
