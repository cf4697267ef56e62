import Foundation
import Glibc
import TestSupport
import Testing

/// The database files that each queue command leaves in the home.
@Suite struct QueueFilesTests {
  /// Every command that opens the queue.
  ///
  /// TOKEN stands for the token of a leased message, EXPORT for an export of another home.
  static let commands = [
    "publish c", "receive c", "receive c --no-ack", "ack TOKEN", "release TOKEN",
    "reject TOKEN --reason r", "extend TOKEN --lease 1h", "history c", "channels", "stats",
    "consumers c", "consumers add c worker", "consumers remove c default", "retention c",
    "retention set c --count 5", "limit", "limit set --bytes 99999999", "dead-letters c",
    "dead-letters remove c --all",
    "dead-letters move c --all --to d", "peek c", "redrive c", "purge c", "compact", "export",
    "import EXPORT", "verify", "verify --quick", "rekey", "accept-rollback", "salvage",
  ]

  private static func databaseFiles(_ home: TestHome) throws -> [String] {
    let names = ["db", "db-wal", "db-shm", "db-journal"].map { "messaging." + $0 }
    return try FileManager.default.contentsOfDirectory(atPath: home.path)
      .filter(names.contains).sorted()
  }

  /// Exports the queue of another home, and returns the path of the file.
  private static func export(beside home: TestHome) throws -> String {
    let file = home.folder.path("export")
    let other = try TestHome.fresh()
    #expect(try other.run("queue", "publish", "d", input: "elsewhere\n").status == 0)
    #expect(try other.run("queue", "export", file).status == 0)
    return file
  }

  @Test(
    .enabled(if: OtherUser.isAvailable, OtherUser.skipReason),
    arguments: ["verify", "history c", "stats", "export"])
  func `a home that this user cannot write is named, with what to do`(command: String) throws {
    let (user, home) = (OtherUser(), try TestHome.unsecured())
    try user.take(home)
    chmod(home.path, 0o500)
    defer { chmod(home.path, 0o700) }
    try user.run(home, ["queue"] + command.split(separator: " ").map(String.init)).expect(
      74, says: "this user cannot write its directory \(home.path)",
      "hint: SQLite writes its log and index beside a database")
  }

  @Test(arguments: commands)
  func `the last command that uses a queue leaves one database file`(
    command: String
  ) throws {
    let home = try TestHome.secured()
    #expect(try Self.databaseFiles(home) == ["messaging.db"])
    var arguments = command.split(separator: " ").map(String.init)
    if command.contains("TOKEN") || command.contains("consumers remove") {
      let token = try home.lease("--lease", "1h")
      arguments = arguments.map { $0 == "TOKEN" ? token : $0 }
    }
    if command.contains("EXPORT") {
      let file = try Self.export(beside: home)
      arguments = arguments.map { $0 == "EXPORT" ? file : $0 }
    }
    try home.queue(arguments, input: Array("second\n".utf8)).expect(0)
    #expect(try Self.databaseFiles(home) == ["messaging.db"])

    // A copy of this file and of the vault is complete.
    let copy = try TestHome.fresh()
    try FileManager.default.createDirectory(
      atPath: copy.path, withIntermediateDirectories: false,
      attributes: [.posixPermissions: 0o700])
    for name in ["messaging.db", "vaults"] {
      try FileManager.default.copyItem(
        atPath: home.path + "/" + name, toPath: copy.path + "/" + name)
    }
    try copy.unlocked("queue", "channels").expect(0)
  }
}
