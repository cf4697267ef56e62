import Foundation
import TestSupport
import Testing
import VaultCrypto

/// A home directory for one test, and files with passwords.
struct TestHome {
  static let password = "correct horse"

  let folder: ScratchFolder
  var path: String { folder.path("home") }
  var passwordFile: String { folder.path("password") }
  var wrongFile: String { folder.path("wrong") }
  /// The key of a slot of the secured home's messaging vault.
  private var keyFile: String { folder.path("unlock-key") }
  /// The options that open the messaging vault without a derivation; none if it has no key file.
  var keySource: [String] {
    FileManager.default.fileExists(atPath: keyFile) ? ["--unlock-key-file", keyFile] : []
  }
  /// The key file's contents.
  func key() throws -> SecretBytes { try SecretBytes(copying: folder.bytes("unlock-key")) }
  var database: String { path + "/messaging.db" }

  func vault(_ id: String) -> String { path + "/vaults/\(id).vault" }

  /// Makes an empty home.
  static func fresh() throws -> TestHome {
    let home = TestHome(folder: ScratchFolder())
    try home.folder.file("password", Array((password + "\n").utf8))
    try home.folder.file("wrong", Array("wrong horse".utf8))
    return home
  }

  /// Makes a home with a secured messaging vault and the message "first" in channel "c".
  static func secured() throws -> TestHome { try copy(of: securedOriginal.get()) }

  /// Makes a home with a secured messaging vault that a key file opens, and no message.
  static func keyed() throws -> TestHome { try copy(of: keyedOriginal.get()) }

  /// Makes a home with a messaging vault that is not secured and the message "first" in channel
  /// "c".
  static func unsecured() throws -> TestHome { try copy(of: unsecuredOriginal.get()) }

  /// Runs `datavault` on this home.
  func run(
    _ arguments: String..., input: String = "", environment: [String: String] = [:]
  ) throws -> Program {
    try run(arguments, input: input, environment: environment)
  }

  func run(
    _ arguments: [String], input: String = "", environment: [String: String] = [:]
  ) throws -> Program {
    try Tool.run(arguments + ["--home", path], input: Array(input.utf8), environment: environment)
  }

  /// Runs a queue command on this home, with the key file if it has one.
  ///
  /// A password would take a derivation of 0.1 seconds in each of some hundred commands.
  func queue(_ command: String..., input: String = "") throws -> Program {
    try queue(command, input: Array(input.utf8))
  }

  func queue(_ command: [String], input: [UInt8] = []) throws -> Program {
    try Tool.run(["queue"] + command + ["--home", path] + keySource, input: input)
  }

  /// Creates a vault with the password.
  @discardableResult
  func create(_ id: String) throws -> Program {
    try run("create", id, "--new-password-file", passwordFile).expect(0)
  }

  /// Puts the vault "v" into this home, which opens with the password.
  func createVault() throws {
    let vaults = path + "/vaults"
    try FileManager.default.createDirectory(
      atPath: vaults, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    try FileManager.default.copyItem(
      atPath: Self.vaultOriginal.get().vault("v"), toPath: vault("v"))
  }

  /// Runs `datavault` on this home with the password.
  func unlocked(_ arguments: String..., input: String = "") throws -> Program {
    try unlocked(arguments, input: Array(input.utf8))
  }

  func unlocked(_ arguments: [String], input: [UInt8]) throws -> Program {
    try Tool.run(arguments + ["--home", path, "--password-file", passwordFile], input: input)
  }

  /// Leases one message of channel "c", and returns its token.
  func lease(_ options: String...) throws -> String {
    let receive = ["receive", "c", "--max", "1", "--no-ack", "--ndjson"]
    return try #require(queue(receive + options).objects.first?["token"] as? String)
  }

  /// Starts `datavault` on this home with the password.
  func start(
    _ arguments: String..., descriptors: [Int32: Child.Descriptor], through wrapper: [String] = []
  ) throws -> Child {
    try Child(
      arguments + ["--home", path, "--password-file", passwordFile],
      descriptors: descriptors, through: wrapper)
  }

  /// The bytes of every file of the home.
  ///
  /// SQLite's shared memory, the records of attempts and empty files are omitted.
  func contents() throws -> [String: Data] {
    var contents: [String: Data] = [:]
    for name in FileManager.default.enumerator(atPath: path)?.allObjects as? [String] ?? [] {
      guard !name.hasSuffix("-shm"), !name.hasSuffix(".retry"),
        let bytes = FileManager.default.contents(atPath: path + "/" + name), !bytes.isEmpty
      else { continue }
      contents[name] = bytes
    }
    return contents
  }

  // Each is made only once, because a password takes a derivation.
  private static let unsecuredOriginal = Result {
    let home = try fresh()
    let published = try home.run("queue", "publish", "c", input: "first\n")
    try #require(published.status == 0, "\(published.errors)")
    return home
  }

  private static let vaultOriginal = Result {
    let home = try fresh()
    try home.create("v")
    return home
  }

  private static let securedOriginal = Result { try secure(unsecured()) }
  private static let keyedOriginal = Result { try secure(fresh()) }

  /// Secures the messaging vault of a home, and adds a slot of a key file.
  private static func secure(_ home: TestHome) throws -> TestHome {
    let secured = try home.run("secure", "--new-password-file", home.passwordFile)
    try #require(secured.status == 0, "\(secured.errors)")
    try home.folder.file("unlock-key", (0..<32).map { _ in UInt8.random(in: 0...255) })
    let slot = try home.run(
      "slots", "add", "messaging", "test", "--new-slot-key-file", home.keyFile,
      "--password-file", home.passwordFile)
    try #require(slot.status == 0, "\(slot.errors)")
    return home
  }

  static func copy(of original: TestHome) throws -> TestHome {
    let home = try fresh()
    try FileManager.default.copyItem(atPath: original.path, toPath: home.path)
    if FileManager.default.fileExists(atPath: original.keyFile) {
      try FileManager.default.copyItem(atPath: original.keyFile, toPath: home.keyFile)
    }
    return home
  }
}
