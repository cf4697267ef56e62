import Foundation
import Glibc
import TestSupport
import Testing

/// Backups by real processes: beside publishers, killed, and on a full disk.
@Suite struct BackupCommandTests {
  /// More in the nightly run.
  private static let backupCount =
    ProcessInfo.processInfo.environment["DATAVAULT_BACKUPS"].flatMap(Int.init) ?? 2

  private let home: TestHome
  private var backup: String { home.folder.path("backup") }
  private var restored: String { home.folder.path("restored") }

  init() throws {
    home = try TestHome.secured()
    try home.createVault()
  }

  private func publish(_ lines: some Sequence<Int>, bytes: Int = 10) throws {
    let text = lines.map { "\($0) " + String(repeating: "m", count: bytes) + "\n" }.joined()
    try home.queue(["publish", "d"], input: Array(text.utf8)).expect(0)
  }

  private func tool(_ command: String..., password: String? = nil) throws -> Program {
    try Tool.run(command + ["--password-file", password ?? home.passwordFile])
  }

  /// The numbers in channel "d" of a home.
  private func numbers(in path: String) throws -> [Int] {
    let history = try tool("queue", "history", "d", "--home", path).expect(0)
    return history.lines.compactMap { $0.split(separator: " ").first.flatMap { Int($0) } }
  }

  private func remove(_ paths: String...) throws {
    for path in paths where FileManager.default.fileExists(atPath: path) {
      try FileManager.default.removeItem(atPath: path)
    }
  }

  @Test func `a backup is verified and restored with the password of its day`() throws {
    try publish(0..<3)
    #expect(try home.unlocked("backup", backup).text.contains("messages   4\n"))
    try home.folder.file("new-password", "another horse\n".utf8)
    _ = try Tool.run([
      "change-password", "messaging", "--home", home.path, "--password-file", home.passwordFile,
      "--new-password-file", home.folder.path("new-password"),
    ]).expect(0)
    #expect(try tool("verify-backup", backup, password: home.wrongFile).status == 77)
    let before = try FileManager.default.subpathsOfDirectory(atPath: backup).sorted()
    #expect(try tool("verify-backup", backup).text.contains("is intact"))
    #expect(try FileManager.default.subpathsOfDirectory(atPath: backup).sorted() == before)
    try tool("restore", backup, restored).expect(0)
    #expect(try numbers(in: restored) == [0, 1, 2])
    #expect(try tool("items", "v", "--home", restored).status == 0)
    #expect(try tool("restore", backup, restored).status == 73)
    #expect(try home.unlocked("backup", backup).status == 73)
    #expect(try tool("verify-backup", home.folder.path("none")).status == 66)
    let link = home.folder.path("link")
    symlink(backup, link)
    #expect(try home.unlocked("backup", link).status == 73)
  }

  @Test func `backups beside four publishers have everything acknowledged before them`() throws {
    let publishers = try (0..<4).map {
      try Publisher(home, ["c\($0)", "--password-file", home.passwordFile])
    }
    // Others publish as fast as they can.
    try home.folder.file("lines", (0..<200_000).map { "\($0)\n" }.joined().utf8)
    let input = Child.Descriptor.reading(home.folder.path("lines"))
    let busy = try (0..<2).map {
      try home.start("queue", "publish", "e\($0)", descriptors: [0: input])
    }
    defer {
      for child in busy {
        kill(child.id, SIGKILL)
        _ = child.wait()
      }
    }
    var (acknowledged, lost) = (0, 0)
    for round in 0..<Self.backupCount {
      for _ in 0..<3 {
        for publisher in publishers { publisher.publish("\(acknowledged)") }
        acknowledged += 1
        for publisher in publishers { try publisher.report(acknowledged) }
      }
      try home.unlocked("backup", backup).expect(0)
      try tool("restore", backup, restored, "--quick").expect(0)
      for channel in ["c0", "c1", "c2", "c3", "e0", "e1"] {
        let lines = try tool("queue", "history", channel, "--home", restored).expect(0).lines
        if channel.hasPrefix("c") {
          #expect(lines.count == acknowledged, "backup \(round)")
          lost += acknowledged - lines.count
        }
        #expect(lines == (0..<lines.count).map(String.init))
      }
      try remove(backup, restored)
    }
    for publisher in publishers { #expect(publisher.finish() == 0) }
    print(
      "backups: \(Self.backupCount), acknowledged: \(4 * acknowledged), lost: \(lost)")
  }

  @Test func `a killed backup or restore leaves nothing under its name, and the home as it was`()
    throws
  {
    try publish(0..<3000, bytes: 1000)
    let size = try #require(FileManager.default.contents(atPath: home.database)).count
    let before = try home.contents()
    var killCount = 0
    for part in 0..<max(6, Self.backupCount) {
      let child = try home.start("backup", backup, descriptors: [:])
      let side = home.folder.path(
        ".backup.new/\(part % 2 == 0 ? ".messaging.db.new" : "messaging.db")")
      killCount += child.killed(when: side, reaches: size * (part % 5) / 4) ? 1 : 0
      #expect(try home.contents() == before)
      if FileManager.default.fileExists(atPath: backup) {
        try tool("verify-backup", backup).expect(0)
        try remove(backup)
      }
    }
    #expect(killCount >= 3)
    print("backup kill runs: \(killCount)")
    try home.unlocked("backup", backup).expect(0)
    #expect(!FileManager.default.fileExists(atPath: home.folder.path(".backup.new")))
    for part in 0..<max(6, Self.backupCount) {
      let child = try Child(
        ["restore", backup, restored, "--password-file", home.passwordFile])
      _ = child.killed(
        when: home.folder.path(".restored.new/messaging.db"), reaches: size * (part % 5) / 4)
      if FileManager.default.fileExists(atPath: restored) {
        #expect(try numbers(in: restored).count == 3000)
        try remove(restored)
      }
    }
    try tool("restore", backup, restored).expect(0)
    #expect(try numbers(in: restored) == Array(0..<3000))
    try tool("verify-backup", backup).expect(0)
  }

  @Test(.enabled(if: SmallDisk.isAvailable, SmallDisk.skipReason))
  func `a backup or restore on a full disk ends with 74 and leaves nothing`() throws {
    try publish(0..<1000, bytes: 1000)
    let disk = try SmallDisk(at: home.folder.path("disk"), byteCount: 600_000)
    #expect(try home.unlocked("backup", disk.path + "/backup").status == 74)
    #expect(disk.names == [])
    try home.unlocked("backup", backup).expect(0)
    #expect(try tool("restore", backup, disk.path + "/home").status == 74)
    #expect(disk.names == [])
    try disk.resize(byteCount: 8_000_000)
    try home.unlocked("backup", disk.path + "/backup").expect(0)
    try tool("restore", disk.path + "/backup", disk.path + "/home").expect(0)
    #expect(disk.names == ["backup", "home"])
  }

  @Test func `no plaintext of a message or a vault is in a backup`() throws {
    try publish(7..<8, bytes: 50)
    let canary = Data(String(repeating: "m", count: 50).utf8)
    try home.unlocked("backup", backup).expect(0)
    for name in try FileManager.default.subpathsOfDirectory(atPath: backup) {
      let bytes = FileManager.default.contents(atPath: "\(backup)/\(name)") ?? Data()
      #expect(bytes.range(of: canary) == nil, "\(name)")
    }
  }
}
