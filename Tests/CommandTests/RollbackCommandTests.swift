import Foundation
import Testing

@Suite struct RollbackCommandTests {
  @Test func `an older copy of the messages is refused with 65 until it is accepted by name`()
    throws
  {
    let home = try TestHome.secured()
    let nothing = try home.unlocked("queue", "accept-rollback")
    #expect(nothing.status == 0)
    let older = try #require(FileManager.default.contents(atPath: home.database))
    #expect(try home.unlocked("queue", "publish", "c", input: "second\n").status == 0)
    try Data(older).write(to: URL(fileURLWithPath: home.database))
    for suffix in ["-wal", "-shm"] {
      try? FileManager.default.removeItem(atPath: home.database + suffix)
    }

    let refused = try home.unlocked("queue", "receive", "c")
    #expect(refused.status == 65)
    #expect(refused.errors.contains("older copy"))
    #expect(refused.errors.contains("hint: "))
    #expect(refused.errors.contains("accept-rollback"))
    #expect(refused.output.isEmpty)
    #expect(FileManager.default.contents(atPath: home.database) == older)

    let accepted = try home.unlocked("queue", "accept-rollback")
    #expect(accepted.status == 0, "\(accepted.errors)")
    #expect(try home.unlocked("queue", "receive", "c").text == "first\n")
  }
}
