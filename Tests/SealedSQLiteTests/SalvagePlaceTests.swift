import Foundation
import SealedSQLite
import SealedVFS
import SystemPackage
import TestSupport
import Testing

@Suite struct SalvagePlaceTests {
  private let directory = ScratchFolder()
  private let source: FilePath

  init() throws {
    let fixture = try SalvageFixture.Variant.plain.fixture()
    source = FilePath(try directory.file("a.db", fixture.bytes))
    #expect(chmod(source.string, 0o640) == 0)
  }

  @Test func `two salvages to one path exclude each other, and a killed one is removed`() throws {
    let destination = directory("b.db")
    let side = open(directory(".b.db.new").string, O_RDWR | O_CREAT, 0o600)
    #expect(flock(side, LOCK_EX | LOCK_NB) == 0)
    #expect(Foundation.write(side, "half a database", 15) == 15)
    expectError(.busy) {
      try SealedDatabase.salvage(from: source, key: testKey(), to: destination)
    }
    close(side)
    let salvage = try SealedDatabase.salvage(from: source, key: testKey(), to: destination)
    #expect(salvage.isComplete)
    #expect(try directory.names() == ["a.db", "b.db"])
  }

  @Test func `a salvaged database has the source's permissions, also through a symbolic link`()
    throws
  {
    let link = directory("link.db")
    #expect(symlink("a.db", link.string) == 0)
    for (name, named) in [("b.db", source), ("c.db", link)] {
      let destination = directory(name)
      _ = try SealedDatabase.salvage(from: named, key: testKey(), to: destination)
      let attributes = try FileManager.default.attributesOfItem(atPath: destination.string)
      #expect(attributes[.posixPermissions] as? Int == 0o640, "\(name)")
    }
  }

  @Test func `a salvage keeps an existing destination, and a wrong key creates no file`() throws {
    try directory.file("b.db", [1])
    expectError(.alreadyExists) {
      try SealedDatabase.salvage(from: source, key: testKey(), to: directory("b.db"))
    }
    expectError(.wrongKey) {
      try SealedDatabase.salvage(from: source, key: testKey(8), to: directory("c.db"))
    }
    #expect(try directory.names() == ["a.db", "b.db"])
  }

  @Test func `a salvage refuses a destination with a log beside it`() throws {
    try directory.file("b.db-wal", [])
    let refused = expectError(.alreadyExists) {
      try SealedDatabase.salvage(from: source, key: testKey(), to: directory("b.db"))
    }
    #expect(refused?.message.contains("b.db-wal") == true)
    #expect(try directory.names() == ["a.db", "b.db-wal"])
  }
}
