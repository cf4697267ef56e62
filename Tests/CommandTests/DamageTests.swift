import Foundation
import Glibc
import TestSupport
import Testing

@Suite struct DamageTests {
  private let home: TestHome

  init() throws { home = try TestHome.secured() }

  /// One damage of a home, and the exit code that it causes.
  struct Damage: CustomTestStringConvertible {
    let testDescription: String
    let status: Int32
    let apply: @Sendable (TestHome) throws -> Void
  }

  static func change(_ path: String, _ body: (inout Data) throws -> Void) throws {
    let url = URL(fileURLWithPath: path)
    var bytes = try Data(contentsOf: url)
    try body(&bytes)
    try bytes.write(to: url)
    chmod(path, 0o600)
  }

  static let damages: [Damage] = [
    Damage(testDescription: "a truncated vault", status: 65) {
      try change($0.vault("messaging")) { $0.removeLast(100) }
    },
    Damage(testDescription: "a vault with one flipped bit", status: 65) {
      try change($0.vault("messaging")) { $0[$0.count / 2] ^= 1 }
    },
    Damage(testDescription: "an empty vault file", status: 65) {
      try change($0.vault("messaging")) { $0.removeAll() }
    },
    Damage(testDescription: "a vault that other users can read", status: 77) {
      chmod($0.vault("messaging"), 0o644)
    },
    Damage(testDescription: "no vault beside the database", status: 66) {
      try FileManager.default.removeItem(atPath: $0.vault("messaging"))
    },
    Damage(testDescription: "no database", status: 66) {
      try FileManager.default.removeItem(atPath: $0.database)
    },
    Damage(testDescription: "the database of another vault", status: 65) {
      let stranger = try TestHome.fresh()
      _ = try stranger.run("queue", "publish", "c", input: "strange\n")
      try change($0.database) { $0 = try Data(contentsOf: URL(fileURLWithPath: stranger.database)) }
    },
    Damage(testDescription: "a plain SQLite file", status: 65) {
      try change($0.database) { $0 = Data("SQLite format 3\u{0}".utf8) + Data(count: 4080) }
    },
    Damage(testDescription: "a database of a newer version", status: 65) {
      try change($0.database) { $0[3] = 9 }
    },
    Damage(testDescription: "a vault of a newer version", status: 65) {
      let newer = Repository.path("Fixtures/vaults/negative/newer-version.vault")
      try change($0.vault("messaging")) { $0 = try Data(contentsOf: URL(fileURLWithPath: newer)) }
    },
    Damage(testDescription: "a file of another kind in the database's place", status: 65) {
      try change($0.database) { $0 = Data(repeating: 0x41, count: 8192) }
    },
    Damage(testDescription: "a database page with one flipped bit", status: 65) {
      try change($0.database) { $0[2000] ^= 1 }
    },
  ]

  @Test(arguments: damages)
  func `publish and receive end with the damage's exit code and a hint, and change nothing`(
    damage: Damage
  ) throws {
    try damage.apply(home)
    let before = try home.contents()
    for command in [["queue", "publish", "c"], ["queue", "receive", "c"]] {
      let outcome = try home.unlocked(command, input: Array("a message\n".utf8))
        .expect(damage.status, of: "\(command)", says: "\nhint: ")
      #expect(outcome.errors.hasPrefix("datavault: "))
      #expect(outcome.output.isEmpty)
    }
    #expect(try home.contents() == before)
  }

  @Test func `a damaged page is named as damage, also the one with the rollback anchor`() throws {
    #expect(try home.queue("stats").status == 0)
    let files = try [home.database, home.vault("messaging")].map {
      ($0, try Data(contentsOf: URL(fileURLWithPath: $0)))
    }
    var hidesAnchor = false
    for page in 2...8 {
      // With the vault, which has seen the commits of the page before.
      for (path, bytes) in files { try Self.change(path) { $0 = bytes } }
      try Self.change(home.database) { $0[4096 * (page - 1) + 800] ^= 1 }
      for command in [["queue", "stats"], ["queue", "publish", "c"]] {
        let outcome = try home.unlocked(command, input: Array("m\n".utf8))
        guard outcome.status != 0 else { continue }
        outcome.expect(65, of: "page \(page)", says: "damaged", "\nhint: ")
        guard outcome.errors.contains("looking for the rollback anchor") else { continue }
        hidesAnchor = true
        #expect(try home.unlocked("doctor").status == 65)
      }
    }
    #expect(hidesAnchor)
  }

  @Test func `an empty file in the place of the database ends with 66 where nothing can be done`()
    throws
  {
    try Data().write(to: URL(fileURLWithPath: home.database))
    for command in ["verify", "salvage"] {
      try home.queue(command).expect(66, says: "is empty")
    }
  }

  @Test func `only clean-up-first-run sets aside a vault whose database is missing`() throws {
    try FileManager.default.removeItem(atPath: home.database)
    #expect(try home.queue("publish", "c", input: "a\n").status == 66)
    #expect(try home.run("clean-up-first-run").status == 0)
    #expect(try home.run("list").text == "")
    #expect(try home.run("queue", "publish", "c", input: "a\n").status == 0)
  }

  @Test func `clean-up-first-run keeps a vault that has its database`() throws {
    let before = try home.contents()
    #expect(try home.run("clean-up-first-run").status == 0)
    #expect(try home.contents() == before)
  }

  @Test(arguments: [false, true])
  func `no command creates a vault beside a queue that has lost its vault`(
    isOnlyLogLeft: Bool
  ) throws {
    try FileManager.default.removeItem(atPath: home.vault("messaging"))
    if isOnlyLogLeft { rename(home.database, home.database + "-wal") }
    let before = try home.contents()
    let password = home.passwordFile
    #expect(try home.run("create", "messaging", "--new-password-file", password).status == 66)
    #expect(try home.run("secure", "--new-password-file", password).status == 66)
    #expect(try home.run("queue", "publish", "c", input: "a\n").status == 66)
    try home.queue("publish", "c", input: "a\n")
      .expect(66, says: "hint: a queue exists: restore vaults/messaging.vault")
    #expect(try home.contents() == before)
  }

  @Test func `publish with a password creates no vault in a home without one`() throws {
    let home = try TestHome.fresh()
    try home.unlocked("queue", "publish", "c", input: "a\n")
      .expect(66, says: "create the vault with datavault secure")
    #expect(try home.contents().isEmpty)
  }
}
