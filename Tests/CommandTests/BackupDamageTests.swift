import Foundation
import Glibc
import TestSupport
import Testing

/// Backups whose files are not those that were written, and the owner of what root restores.
@Suite struct BackupDamageTests {
  private let folder = ScratchFolder()
  private var backup: String { folder.path("backup") }
  private var restored: String { folder.path("restored") }

  init() throws {
    let original = try Self.original.get().folder.path("backup")
    try FileManager.default.copyItem(atPath: original, toPath: backup)
  }

  /// A home with two backups: "backup", and "another" after a change of vault "v" and with a vault "w".
  private static let original = Result {
    let home = try TestHome.secured()
    try home.createVault()
    try home.unlocked("backup", home.folder.path("backup")).expect(0)
    try home.create("w")
    try home.unlocked("set", "v", "x", input: "1").expect(0)
    try home.unlocked("backup", home.folder.path("another")).expect(0)
    return home
  }

  private func tool(_ command: String...) throws -> Program {
    try Tool.run(command + ["--password-file", Self.original.get().passwordFile])
  }

  /// A change of one file, by its path in the backup.
  struct Fault: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let file: String
    let change: @Sendable (_ path: String, _ another: String) throws -> Void

    init(
      _ description: String, _ file: String,
      _ change: @escaping @Sendable (_ path: String, _ another: String) throws -> Void
    ) {
      (testDescription, self.file, self.change) = (description, file, change)
    }

    static let all = [
      Fault("a vault is missing", "vaults/v.vault", remove),
      Fault("a vault of another home has its name", "vaults/v.vault", replace),
      Fault("a vault is added", "vaults/w.vault") { path, another in
        try FileManager.default.copyItem(atPath: another + "/vaults/w.vault", toPath: path)
      },
      Fault("the list is missing", "vaults.list", remove),
      Fault("the list is another backup's", "vaults.list", replace),
      Fault("a byte of the list is changed", "vaults.list") { path, _ in
        try change(path) { $0[$0.count / 2] ^= 1 }
      },
      Fault("the database is missing", "messaging.db", remove),
      Fault("the database is empty", "messaging.db") { path, _ in try change(path) { $0 = Data() }
      },
      Fault("the database is a symbolic link", "messaging.db") { path, another in
        try FileManager.default.removeItem(atPath: path)
        #expect(symlink(another + "/messaging.db", path) == 0)
      },
      Fault("a byte follows the database", "messaging.db") { path, _ in
        try change(path) { $0.append(1) }
      },
      Fault("a page follows the database", "messaging.db") { path, _ in
        try change(path) { $0.append(Data(repeating: 7, count: 4096)) }
      },
      Fault("the database is another backup's", "messaging.db", replace),
      Fault("the messaging vault is another backup's", "vaults/messaging.vault", replace),
    ]

    private static let remove: @Sendable (String, String) throws -> Void = { path, _ in
      try FileManager.default.removeItem(atPath: path)
    }
    private static let replace: @Sendable (String, String) throws -> Void = { path, another in
      let parts = path.split(separator: "/").suffix(2)
      let file = parts.first == "vaults" ? parts.joined(separator: "/") : String(parts.last ?? "")
      try change(path) { $0 = try Data(contentsOf: URL(fileURLWithPath: "\(another)/\(file)")) }
    }

    private static func change(_ path: String, _ body: (inout Data) throws -> Void) throws {
      var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
      try body(&bytes)
      try bytes.write(to: URL(fileURLWithPath: path))
    }
  }

  @Test(arguments: Fault.all)
  func `a backup with a changed file is refused with 65, and nothing is restored`(
    fault: Fault
  ) throws {
    try fault.change(
      "\(backup)/\(fault.file)", Self.original.get().folder.path("another"))
    try tool("verify-backup", backup).expect(65, says: "hint: use an older backup")
    try tool("restore", backup, restored).expect(65, says: "the backup \(backup) is damaged")
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
    #expect(!names.contains { $0.contains("restored") })
  }

  @Test func `a backup without the vault that a password is for, or without any, ends with 66`()
    throws
  {
    try FileManager.default.removeItem(atPath: backup + "/vaults/messaging.vault")
    try tool("verify-backup", backup).expect(66, says: "no vault 'messaging'")
    try Tool.run(["verify-backup", backup]).expect(
      65, says: "no vault that could hold its key", "use an older backup")
    for name in ["vaults/v.vault", "messaging.db"] {
      try FileManager.default.removeItem(atPath: "\(backup)/\(name)")
    }
    try Tool.run(["verify-backup", backup]).expect(66, says: "there is no backup")
    try Tool.run(["restore", backup, restored]).expect(66, says: "there is no backup")
  }

  @Test func `the list of vaults is what sha256sum checks`() throws {
    let sealed = try Data(contentsOf: URL(fileURLWithPath: backup + "/vaults.list"))
    let list = try Self.original.get().unlocked(
      ["decrypt", "messaging", "--context", "datavault backup"], input: Array(sealed))
    let check = try Program.run(
      "/bin/sh", ["-c", "cd \"$0\" && sha256sum --strict -c", backup], input: list.output)
    #expect(check.text == "vaults/messaging.vault: OK\nvaults/v.vault: OK\n")
  }

  @Test(.enabled(if: geteuid() == 0, "only root makes files of another user"))
  func `what root restores belongs to the owner of the directory in its place or above it`()
    throws
  {
    let owner: uid_t = 65534
    for place in [folder.path("empty"), folder.path("parent") + "/home"] {
      let directory = place.hasSuffix("empty") ? place : folder.path("parent")
      #expect(mkdir(directory, 0o700) == 0 && chown(directory, owner, owner) == 0)
      try tool("restore", backup, place).expect(0)
      for name in try FileManager.default.subpathsOfDirectory(atPath: place) + ["."] {
        var status = stat()
        #expect(lstat("\(place)/\(name)", &status) == 0 && status.st_uid == owner, "\(name)")
      }
    }
  }
}
