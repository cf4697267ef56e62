import Foundation
import Glibc
import TestSupport
import Testing

/// What will keep the queue from being used soon, and what others have left: `doctor` warns, and its fix ends the warning.
extension DoctorCommandTests {
  /// Runs the command of a finding's fix, and expects that the finding is gone.
  private func applyFix(_ command: Regex<(Substring, Substring)>) throws {
    let text = try home.run("doctor").expect(0).text
    let fix = try #require(text.firstMatch(of: command)?.output.1, "\(text)")
    try Program.run("/bin/sh", ["-c", String(fix)]).expect(0)
    try expectFindings([])
  }

  private func databaseByteCount() throws -> Int {
    let report = try home.queue("limit", "--json").expect(0).objects.first
    return try #require(report?["databaseBytes"] as? Int)
  }

  @Test func `doctor warns from 90 percent of the limit on, if it can open the vault`() throws {
    let byteCount = try databaseByteCount()
    func look(_ limit: String, _ kinds: [String], says text: String = "{") throws {
      try home.queue("limit", "set", "--bytes", limit).expect(0)
      try expectFindings(kinds, says: text, in: home.unlocked("doctor", "--json"))
      // The limit is sealed.
      try expectFindings([], says: "reaches its limit: the messaging vault is locked")
    }
    try look("\(byteCount * 10 / 9 + 9)", [])
    try look(
      "\(byteCount * 10 / 9)", ["limitNearlyReached -"], says: "queue limit set --bytes N")
    try look("\(byteCount)", ["queueFull -"], says: "publishing is refused")
    try home.queue("publish", "c", input: "second\n")
      .expect(75, says: "its limit is \(byteCount)", "datavault queue limit set --bytes N")
    try look("none", [])
    try home.queue("publish", "c", input: "second\n").expect(0)
  }

  @Test func `queue limit refuses a limit below 1, and says what it shows`() throws {
    try home.queue("limit", "set", "--bytes", "0").expect(64)
    try home.queue("limit").expect(0, prints: "limit      none")
    try home.queue("limit", "set", "--bytes", "5000000").expect(0)
    try home.queue("limit").expect(0, prints: "limit      5000000 bytes")
    try home.queue("stats").expect(0, prints: "limit      5000000 bytes")
  }

  @Test(arguments: [
    "messaging.db.creating", ".messaging.db.new", "messaging.db.salvaged", "messaging.db.damaged-1",
  ])
  func `doctor names a file that an interrupted command has left`(name: String) throws {
    try Data("left".utf8).write(to: URL(fileURLWithPath: home.path + "/" + name))
    chmod(home.path + "/" + name, 0o600)
    try expectFindings(["leftoverFile -"], says: name)
    try applyFix(/fix: .*run (rm .*)/)
  }

  @Test func `doctor names an unfinished export and an unfinished backup`() throws {
    try Data("left".utf8).write(to: URL(fileURLWithPath: home.path + "/export.partial"))
    chmod(home.path + "/export.partial", 0o600)
    try expectFindings(["leftoverFile -"], says: "messages in clear")
    try applyFix(/fix: .* or (rm .*)/)
    for path in [home.path + "/.backup.new", home.folder.path(".home.new")] {
      mkdir(path, 0o700)
      try Data().write(to: URL(fileURLWithPath: path + "/messaging.lock"))
      chmod(path + "/messaging.lock", 0o600)
      try expectFindings(["leftoverFile -"], says: path)
      try applyFix(/fix: run (rm -r .*)/)
    }
  }

  @Test func `doctor takes no file for a leftover while its command runs`() throws {
    for (lock, file) in [
      ("messaging.lock", "messaging.db.creating"), ("export.partial", "export.partial"),
    ] {
      let path = home.path + "/" + file
      try Data("new".utf8).write(to: URL(fileURLWithPath: path))
      chmod(path, 0o600)
      let descriptor = open(home.path + "/" + lock, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
      #expect(flock(descriptor, LOCK_EX | LOCK_NB) == 0)
      try expectFindings([])
      close(descriptor)
      try expectFindings(["leftoverFile -"])
      unlink(path)
    }
  }

  @Test func `doctor names files without their database`() throws {
    rename(home.database, home.folder.path("aside"))
    for (suffix, content) in [("-shm", Data(count: 32768)), ("-reserve", Data(count: 1))] {
      try content.write(to: URL(fileURLWithPath: home.database + suffix))
      chmod(home.database + suffix, 0o600)
    }
    try expectFindings(
      ["leftoverFile -", "leftoverFile -", "databaseMissing -"], status: 66, says: "run rm")
    for suffix in ["-shm", "-reserve"] { unlink(home.database + suffix) }
    // A log can hold messages: it is no leftover.
    try Data(count: 32).write(to: URL(fileURLWithPath: home.database + "-wal"))
    chmod(home.database + "-wal", 0o600)
    try expectFindings(["databaseMissing -"], status: 66)
  }

  @Test func `doctor warns of a journal and of a database that is cut off, without the password`()
    throws
  {
    let journal = home.database + "-journal"
    try Data(count: 512).write(to: URL(fileURLWithPath: journal))
    chmod(journal, 0o600)
    try expectFindings(["leftoverJournal -"], says: "move it to another directory")
    try expectFindings(["leftoverJournal -"], in: home.unlocked("doctor", "--json"))
    rename(journal, home.folder.path("journal"))
    try home.queue("verify").expect(0)
    try expectFindings([])

    let byteCount = try Data(contentsOf: URL(fileURLWithPath: home.database)).count
    truncate(home.database, byteCount - 100)
    try expectFindings(["partialPage -"], says: "datavault queue verify")
    try expectFindings(
      ["damaged -"], status: 65, says: "run datavault queue salvage",
      in: home.unlocked("doctor", "--json"))
    try home.queue("verify").expect(65)
  }

  @Test func `doctor says that a locked vault's database is foreign or damaged`() throws {
    var database = try Data(contentsOf: URL(fileURLWithPath: home.database))
    database[9] ^= 0xFF
    try database.write(to: URL(fileURLWithPath: home.database))
    try expectFindings(
      ["databaseMismatch -"], status: 65, says: "datavault doctor --password-file FILE")
    try expectFindings(["damaged -"], status: 65, in: home.unlocked("doctor", "--json"))
    try home.queue("salvage").expect(0)
    try expectFindings(["leftoverFile -"], says: "messaging.db.damaged-1")
    try applyFix(/fix: if no message is missing, run (rm .*)/)
  }

  @Test func `doctor reports an interrupted salvage, with and without the password`() throws {
    try home.queue("salvage").expect(0)
    // A kill after the vault was bound to the copy, and before the files were renamed.
    rename(home.database, home.database + ".salvaged")
    rename(home.database + ".damaged-1", home.database)
    try expectFindings(["salvageInterrupted -"], says: "run datavault queue salvage")
    try expectFindings(["salvageInterrupted -"], in: home.unlocked("doctor", "--json"))
    try home.queue("salvage").expect(65, says: "has lost is not known")
    try expectFindings(["leftoverFile -"], says: "messaging.db.damaged-1")
  }

  @Test func `doctor warns of a reserve that was released, and compact makes it again`() throws {
    let reserve = home.database + "-reserve"
    #expect(FileManager.default.createFile(atPath: reserve, contents: nil))
    chmod(reserve, 0o600)
    try expectFindings(["reserveMissing -"], says: "run datavault queue compact")
    try home.queue("compact").expect(0)
    try expectFindings([])
    // A larger queue without one is reported, too.
    unlink(reserve)
    try expectFindings([])
    truncate(home.database, 9 << 20)
    try expectFindings(["reserveMissing -"], says: "does not exist")
  }

  @Test(.enabled(if: SmallDisk.isAvailable, SmallDisk.skipReason))
  func `doctor warns of a disk that is nearly full, and its fix ends the warning`() throws {
    let home = try TestHome.fresh()
    let disk = try SmallDisk(at: home.path, byteCount: 24 << 20)
    try home.run("queue", "publish", "c", input: String(repeating: "x", count: 1000) + "\n")
      .expect(0)
    func look(_ kinds: [String]) throws {
      let outcome = try home.run("doctor", "--json").expect(0)
      #expect(try self.kinds(outcome) == ["standardPassword messaging"] + kinds)
    }
    try look(["diskNearlyFull -"])
    try disk.resize(byteCount: 64 << 20)
    try look([])
    try home.run("queue", "compact").expect(0)
    // With the reserve, less free space is enough.
    try disk.resize(byteCount: 24 << 20)
    try look([])
    try disk.resize(byteCount: 12 << 20)
    try look(["diskNearlyFull -"])
  }
}
