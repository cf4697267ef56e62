import Foundation
import Glibc
import TestSupport
import Testing

@Suite struct FullDiskTests {
  @Test(.enabled(if: getuid() == 0, "mounting a small tmpfs needs root"))
  func `the daemon reports a full disk to its client, and loses no answered message`() throws {
    let original = try Spool.unsecured()
    let spool = Spool(folder: ScratchFolder())
    try FileManager.default.createDirectory(
      atPath: spool.home, withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o700])
    guard mount("tmpfs", spool.home, "tmpfs", 0, "size=4m,mode=0700") == 0 else {
      try Test.cancel("this machine refuses a mount")
    }
    defer { umount2(spool.home, Int32(MNT_DETACH)) }
    try FileManager.default.createDirectory(
      atPath: spool.home + "/vaults", withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o700])
    for name in try FileManager.default.subpathsOfDirectory(atPath: original.home)
    where name != "vaults" {
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

    #expect(mount("tmpfs", spool.home, "tmpfs", UInt(MS_REMOUNT), "size=64m,mode=0700") == 0)
    #expect(client.ask("last short")?.hasPrefix("ok last ") == true)
    answered.insert("last")
    try spool.waitForLines(daemon) { _ in answered.isSubset(of: spool.deliveredCounts().keys) }
    #expect(daemon.stop() == 0)
  }
}
