import Foundation
import TestSupport
import Testing

/// Commands on a full disk: they end with 74, leave no partial file, and succeed when there is
/// space.
@Suite(.enabled(if: SmallDisk.isAvailable, SmallDisk.skipReason))
struct DatabaseFullDiskTests {
  /// Expects that a command to `disk/new` ends with 74 and leaves no file, and succeeds with space.
  ///
  /// - Returns: what the command said of the full disk.
  @discardableResult
  private func expectFullDisk(
    of source: String, growingBy factor: Int = 2, _ command: (ExchangeFixture) throws -> Program
  ) throws -> Program {
    let fixture = try ExchangeFixture(rowCount: 1500)
    let bytes = try fixture.folder.bytes(source)
    let disk = try SmallDisk(at: fixture.folder.path("disk"), byteCount: bytes.count / 2)
    let full = try command(fixture).expect(74)
    #expect(disk.names == [])
    #expect(try fixture.folder.bytes(source) == bytes)
    try disk.resize(byteCount: bytes.count * factor)
    try command(fixture).expect(0)
    #expect(disk.names == ["new"])
    return full
  }

  @Test(arguments: ["sealed", "sqlcipher4", "plain"])
  func `an export to a full disk leaves no file, and succeeds when there is space`(
    format: String
  ) throws {
    let full = try expectFullDisk(of: "sealed") { try $0.export("disk/new", format) }
    #expect(full.errors.contains("hint: "))
  }

  @Test func `an import to a full disk leaves no file, and succeeds when there is space`() throws {
    try expectFullDisk(of: "plain") { try $0.importPlain("disk/new") }
  }

  @Test func `a salvage to a full disk leaves no file, and succeeds when there is space`() throws {
    try expectFullDisk(of: "sealed", growingBy: 3) { fixture in
      try fixture.run(
        "salvage", fixture.sealed, fixture.folder.path("disk/new"), "--key-file", fixture.key)
    }
  }

  @Test func `a rekey on a full disk keeps every message, and succeeds when there is space`() throws
  {
    let home = try TestHome.secured()
    let lines = (1...1000).map { "\($0) " + String(repeating: "m", count: 1000) }
    let input = lines.joined(separator: "\n") + "\n"
    try home.queue("publish", "d", input: input).expect(0)
    let aside = home.folder.path("aside")
    try FileManager.default.moveItem(atPath: home.path, toPath: aside)
    let disk = try SmallDisk(at: home.path, byteCount: 2_000_000)
    for name in try FileManager.default.contentsOfDirectory(atPath: aside) {
      try FileManager.default.copyItem(atPath: "\(aside)/\(name)", toPath: "\(home.path)/\(name)")
    }
    let names = disk.names
    let database = try #require(FileManager.default.contents(atPath: home.database))
    #expect(database.count > 1_100_000)
    try home.queue("rekey").expect(74)
    #expect(disk.names == names)
    #expect(FileManager.default.contents(atPath: home.database) == database)

    try disk.resize(byteCount: 8_000_000)
    try home.queue("rekey").expect(0)
    #expect(try home.queue("receive", "d").text == input)
  }
}
