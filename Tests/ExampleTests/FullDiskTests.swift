import Foundation
import TestSupport
import Testing

@Suite struct FullDiskTests {
  @Test(.enabled(if: SmallDisk.isAvailable, "mounting a small tmpfs needs root"))
  func `the daemon reports a full disk to its client, and loses no answered message`() throws {
    let original = try Spool.unsecured()
    let spool = Spool(folder: ScratchFolder())
    let disk = try SmallDisk(at: spool.home, byteCount: 4 << 20)
    defer { withExtendedLifetime(disk) {} }
    for name in try FileManager.default.contentsOfDirectory(atPath: original.home) {
      try FileManager.default.copyItem(
        atPath: original.home + "/" + name, toPath: spool.home + "/" + name)
    }
    let daemon = try Daemon(spool).whenDelivering()
    let client = try Client(spool.socket)

    // Each message would be delivered and deleted if the file system had space.
    var answered: Set<String> = []
    let payload = String(repeating: "x", count: 300_000)
    var number = 0
    var answer = ""
    repeat {
      answer = try #require(client.ask("m\(number) \(payload)"))
      if answer.hasPrefix("ok ") { answered.insert("m\(number)") }
      number += 1
    } while answer.hasPrefix("ok ")
    #expect(answer == "no m\(number - 1) diskFull")

    try disk.resize(byteCount: 64 << 20)
    #expect(client.ask("last short")?.hasPrefix("ok last ") == true)
    answered.insert("last")
    try spool.waitForLines(daemon) { _ in answered.isSubset(of: spool.deliveredCounts().keys) }
    #expect(daemon.stop() == 0)
  }
}
