import Foundation
import TestSupport
import Testing

/// A home directory for one test, and files with passwords.
struct TestHome {
  static let password = "correct horse"

  let folder: ScratchFolder
  var path: String { folder.path("home") }
  var passwordFile: String { folder.path("password") }
  var wrongFile: String { folder.path("wrong") }
  /// The key of a slot of the secured home's messaging vault.
  private var keyFile: String { folder.path("key") }
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

  /// Runs a queue command on this home.
  func queue(_ command: String..., input: String = "") throws -> Program {
    try run(["queue"] + command, input: input)
  }

  /// Creates a vault with the password.
  @discardableResult
  func create(_ id: String) throws -> Program {
    try run("create", id, "--new-password-file", passwordFile).expect(0)
  }

  /// Runs `datavault` on this home with the password, or with a key file where only the queue matters.
  ///
  /// A password takes a derivation of 0.2 seconds in each of some hundred commands.
  func unlocked(_ arguments: String..., input: String = "") throws -> Program {
    try unlocked(arguments, input: Array(input.utf8))
  }

  func unlocked(_ arguments: [String], input: [UInt8]) throws -> Program {
    let isQueue =
      arguments.first == "queue" && FileManager.default.fileExists(atPath: keyFile)
    let source = isQueue ? ["--unlock-key-file", keyFile] : ["--password-file", passwordFile]
    return try Tool.run(arguments + ["--home", path] + source, input: input)
  }

  /// Leases one message of channel "c", and returns its token.
  func lease(_ options: String...) throws -> String {
    let receive = ["queue", "receive", "c", "--max", "1", "--no-ack", "--ndjson"]
    return try #require(run(receive + options).objects.first?["token"] as? String)
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

  // Made only once, because each one needs two key derivations.
  private static let unsecuredOriginal = Result {
    let home = try fresh()
    let published = try home.run("queue", "publish", "c", input: "first\n")
    try #require(published.status == 0, "\(published.errors)")
    return home
  }

  private static let securedOriginal = Result {
    let home = try unsecured()
    let secured = try home.run("secure", "--new-password-file", home.passwordFile)
    try #require(secured.status == 0, "\(secured.errors)")
    try home.folder.file("key", (0..<32).map { _ in UInt8.random(in: 0...255) })
    let slot = try home.run(
      "slots", "add", "messaging", "test", "--new-slot-key-file", home.keyFile,
      "--password-file", home.passwordFile)
    try #require(slot.status == 0, "\(slot.errors)")
    return home
  }

  private static func copy(of original: TestHome) throws -> TestHome {
    let home = try fresh()
    try FileManager.default.copyItem(atPath: original.path, toPath: home.path)
    if FileManager.default.fileExists(atPath: original.keyFile) {
      try FileManager.default.copyItem(atPath: original.keyFile, toPath: home.keyFile)
    }
    return home
  }
}
