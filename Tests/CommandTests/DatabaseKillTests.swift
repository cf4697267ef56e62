import Foundation
import TestSupport
import Testing

/// Database exports that SIGKILL ends.
@Suite struct DatabaseKillTests {
  @Test(arguments: ["sealed", "sqlcipher4", "plain"])
  func `a killed database export leaves no new file, and the next export succeeds`(
    format: String
  ) throws {
    let fixture = try ExchangeFixture(rowCount: 20_000)
    let (source, before) = (try fixture.folder.bytes("sealed"), try fixture.folder.names())
    let dump = try fixture.folder.shell("plain", ".sha3sum")
    let side = fixture.folder.path(".new.new")
    var killCount = 0
    for part in [0, 1, 3, 6] {
      let child = try Child(fixture.exportArguments("new", format))
      killCount += child.killed(when: side, reaches: source.count * part / 8) ? 1 : 0
      #expect(try fixture.folder.bytes("sealed") == source)
      let left = try fixture.folder.names().filter { !before.contains($0) }
      if left == ["new"] {  // the export finished before the signal
        try FileManager.default.removeItem(atPath: fixture.folder.path("new"))
        continue
      }
      #expect(left == [".new.new"])
      if format != "plain" {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: side))
        #expect(bytes.range(of: Data(ExchangeFixture.canary)) == nil)
        #expect(bytes.range(of: Data("CREATE TABLE".utf8)) == nil)
      }
    }
    #expect(killCount >= 2)

    try fixture.export("new", format).expect(0)
    #expect(try fixture.folder.names() == (before + ["new"]).sorted())
    if format == "plain" { #expect(try fixture.folder.shell("new", ".sha3sum") == dump) }
  }
}
