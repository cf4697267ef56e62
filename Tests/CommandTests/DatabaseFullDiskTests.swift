import Foundation
import Testing

/// A disk that is really full: exit 74, nothing half-written, and the next try works.
@Suite(.enabled(if: SmallDisk.isAvailable, SmallDisk.skipReason))
struct DatabaseFullDiskTests {
  @Test(arguments: ["sealed", "sqlcipher4", "plain"])
  func `an export to a full disk leaves nothing, and works when there is room`(
    format: String
  ) throws {
    let bench = try ExchangeFixture(rowCount: 1500)
    let source = try bench.folder.bytes("sealed")
    let disk = try SmallDisk(at: bench.folder.path("disk"), byteCount: source.count / 2)
    let full = try bench.export("disk/new", format)
    #expect(full.status == 74, "\(full.errors)")
    #expect(full.errors.contains("hint: "))
    #expect(disk.names == [])
    #expect(try bench.folder.bytes("sealed") == source)
    try disk.resize(byteCount: source.count * 2)
    let roomy = try bench.export("disk/new", format)
    #expect(roomy.status == 0, "\(roomy.errors)")
    #expect(disk.names == ["new"])
  }

  @Test func `an import to a full disk leaves nothing, and works when there is room`() throws {
    let bench = try ExchangeFixture(rowCount: 1500)
    let source = try bench.folder.bytes("plain")
    let disk = try SmallDisk(at: bench.folder.path("disk"), byteCount: source.count / 2)
    let full = try bench.importPlain("disk/new")
    #expect(full.status == 74, "\(full.errors)")
    #expect(disk.names == [])
    #expect(try bench.folder.bytes("plain") == source)
    try disk.resize(byteCount: source.count * 2)
    #expect(try bench.importPlain("disk/new").status == 0)
    #expect(disk.names == ["new"])
  }

  @Test func `a salvage to a full disk leaves nothing, and works when there is room`() throws {
    let bench = try ExchangeFixture(rowCount: 1500)
    let source = try bench.folder.bytes("sealed")
    let disk = try SmallDisk(at: bench.folder.path("disk"), byteCount: source.count / 2)
    let full = try bench.run(
      "salvage", bench.folder.path("sealed"), bench.folder.path("disk/new"), "--key-file", bench.key
    )
    #expect(full.status == 74, "\(full.errors)")
    #expect(disk.names == [])
    #expect(try bench.folder.bytes("sealed") == source)
    try disk.resize(byteCount: source.count * 3)
    let roomy = try bench.run(
      "salvage", bench.folder.path("sealed"), bench.folder.path("disk/new"), "--key-file", bench.key
    )
    #expect(roomy.status == 0, "\(roomy.errors)")
    #expect(disk.names == ["new"])
  }

  @Test func `a rekey on a full disk keeps every message, and works when there is room`() throws {
    let home = try TestHome.secured()
    let lines = (1...1000).map { "\($0) " + String(repeating: "m", count: 1000) }
    let published = try home.unlocked(
      "queue", "publish", "d", input: lines.joined(separator: "\n") + "\n")
    #expect(published.status == 0, "\(published.errors)")
    let aside = home.folder.path("aside")
    try FileManager.default.moveItem(atPath: home.path, toPath: aside)
    let disk = try SmallDisk(at: home.path, byteCount: 2_000_000)
    for name in try FileManager.default.contentsOfDirectory(atPath: aside) {
      try FileManager.default.copyItem(atPath: "\(aside)/\(name)", toPath: "\(home.path)/\(name)")
    }
    let names = disk.names
    let database = try #require(FileManager.default.contents(atPath: home.database))
    #expect(database.count > 1_100_000)
    let full = try home.unlocked("queue", "rekey")
    #expect(full.status == 74, "\(full.errors)")
    #expect(disk.names == names)
    #expect(FileManager.default.contents(atPath: home.database) == database)

    try disk.resize(byteCount: 8_000_000)
    let roomy = try home.unlocked("queue", "rekey")
    #expect(roomy.status == 0, "\(roomy.errors)")
    #expect(
      try home.unlocked("queue", "receive", "d").text == lines.joined(separator: "\n") + "\n")
  }
}
