import Foundation
import TestSupport
import Testing

@Suite struct RollbackCommandTests {
  @Test func `an older copy of the queue is refused with 65 until accept-rollback accepts it`()
    throws
  {
    let home = try TestHome.secured()
    try home.queue("accept-rollback").expect(0)
    let older = try Self.rollBack(home)

    let refused = try home.queue("receive", "c")
      .expect(65, says: "older copy", "hint: ", "accept-rollback")
    #expect(refused.output.isEmpty)
    #expect(FileManager.default.contents(atPath: home.database) == older)

    try home.queue("accept-rollback").expect(0)
    #expect(try home.queue("receive", "c").text == "first\n")
  }

  @Test func `queue verify and queue salvage report an older copy with 65`() throws {
    let home = try TestHome.secured()
    let older = try Self.rollBack(home)
    let before = try home.contents()
    try home.queue("verify").expect(
      65, says: "hint: ", "accept-rollback", prints: "messaging.db: rolled back\n",
      "\nanchor     missing: it ends with commit ")
    let report = try #require(home.queue("verify", "--json").objects.first)
    #expect(report["isClean"] as? Bool == false)
    let anchor = try #require(report["anchor"] as? [String: Any])
    #expect(anchor["state"] as? String == "missing")
    let numbers = ["found", "expected"].map { anchor["\($0)CommitNumber"] as? Int ?? 0 }
    #expect(numbers[0] > 0 && numbers[0] < numbers[1])

    let refused = try home.queue("salvage", "--json")
      .expect(65, says: "queue salvage --accept-rollback")
    #expect(refused.output.isEmpty)
    #expect(try home.contents() == before)
    #expect(FileManager.default.contents(atPath: home.database) == older)

    let salvaged = try home.queue("salvage", "--accept-rollback", "--json").expect(0)
    let accepted = try #require(salvaged.objects.first?["anchor"] as? [String: Any])
    #expect(accepted["state"] as? String == "missing")
    #expect(try home.queue("receive", "c").text == "first\n")
    try home.queue("verify").expect(0, prints: "\nanchor     known: ")
  }

  /// Publishes a message, restores the older database, and returns its bytes.
  private static func rollBack(_ home: TestHome) throws -> Data {
    let older = try #require(FileManager.default.contents(atPath: home.database))
    #expect(try home.queue("publish", "c", input: "second\n").status == 0)
    try Data(older).write(to: URL(fileURLWithPath: home.database))
    for suffix in ["-wal", "-shm"] {
      try? FileManager.default.removeItem(atPath: home.database + suffix)
    }
    return older
  }
}
