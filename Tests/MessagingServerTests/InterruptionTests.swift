import DataVault
import Foundation
import ProcessMemory
import TestSupport
import Testing

/// The built `datavaultd` beside stock clients that reconnect by themselves.
@Suite(.enabled(if: PubNubClient.python != nil, "pubnub is not installed"))
struct InterruptionTests {
  private struct Totals: Decodable {
    let interruptions: Int
    let acknowledged: Int
    let lost: Int
    let repeated: Int
    let unordered: Int
    let whileLocked: Int
  }

  private let scratch = ScratchFolder()

  private func interrupt(_ mode: String, _ count: Int, _ more: [String] = []) async throws {
    let arguments =
      [
        "-W", "ignore", Repository.path("Tests/ReferenceReaders/pubnub_interruptions.py"), mode,
        Program.built("datavaultd"), scratch.path("home"), String(count),
      ] + more
    let python = try #require(PubNubClient.python)
    let program = try await PubNubClient.onBlockingThread { try Program.run(python, arguments) }
    try #require(!program.output.isEmpty, "\(program.errors)")
    let totals = try JSONDecoder().decode(Totals.self, from: Data(program.output))
    print("server \(mode) runs: \(program.text.trimmingCharacters(in: .newlines))")
    #expect(totals.interruptions == count)
    #expect(totals.acknowledged > count)
    #expect(totals.lost == 0)
    #expect(totals.repeated == 0)
    #expect(totals.unordered == 0)
    #expect(totals.whileLocked == 0)
  }

  /// DATAVAULT_SERVER_KILLS: how often the server is killed; default: 20.
  @Test func `kill -9 of the server loses and repeats no message of clients that reconnect`()
    async throws
  {
    try await interrupt("kill", setting("DATAVAULT_SERVER_KILLS") ?? 20)
  }

  /// DATAVAULT_SERVER_LOCKS: how often the vault is locked; default: 5.
  @Test
  func `nothing passes while the vault is locked, and nothing is lost or repeated after an unlock`()
    async throws
  {
    let password = try securedHome()
    try await interrupt(
      "lock", setting("DATAVAULT_SERVER_LOCKS") ?? 5, [Program.datavault, password])
  }

  @Test func `the memory of a sealed server has no key of a vault, a database or an application`()
    async throws
  {
    let password = try securedHome()
    let home = ["--home", scratch.path("home")]
    let added = try Program.run(
      Program.built("datavaultd"),
      ["app", "add", "shop", "--open", "--json", "--password-file", password] + home)
    struct Keys: Decodable { let publishKey, subscribeKey, secretKey: String }
    let keys = try JSONDecoder().decode(Keys.self, from: Data(added.output))
    let daemon = Process()
    daemon.executableURL = URL(fileURLWithPath: Program.built("datavaultd"))
    daemon.arguments =
      ["serve", "--listen", "127.0.0.1:0", "--password-file", password] + home
    let output = Pipe()
    daemon.standardOutput = output
    daemon.standardError = FileHandle.nullDevice
    try daemon.run()
    defer {
      daemon.terminate()
      daemon.waitUntilExit()
    }
    let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    let url = try #require(line.split(whereSeparator: \.isWhitespace).last)
    let publication =
      "\(url)/publish/\(keys.publishKey)/\(keys.subscribeKey)/0/c/0/%22hello%22"
    let published = try Program.run("/usr/bin/curl", ["-sS", publication])
    #expect(published.text.contains("Sent"))
    let open = try image(of: daemon, "open")
    #expect(open.contains(Array(keys.secretKey.utf8)))
    #expect(!open.expandedKeys().isEmpty)
    let locked = try Program.run(Program.datavault, ["lock", "messaging"] + home)
    #expect(locked.status == 0, "\(locked.errors)")
    for _ in 0..<100 {
      if try Program.run("/usr/bin/curl", ["-sS", publication]).text.contains("locked") { break }
      try await Task.sleep(for: .milliseconds(50))
    }
    // What was answered last still releases its part.
    try await Task.sleep(for: .milliseconds(500))
    let sealed = try image(of: daemon, "sealed")
    #expect(!sealed.contains(Array(keys.secretKey.utf8)))
    #expect(sealed.expandedKeys().isEmpty)
  }

  private func image(of process: Process, _ name: String) throws -> MemoryImage {
    try MemoryImage.write(of: String(process.processIdentifier), to: scratch.path(name))
    return try MemoryImage(readingFrom: scratch.path(name))
  }

  /// A home with a password of its own, and the file of that password.
  private func securedHome() throws -> String {
    let password = scratch.path("password")
    try Data("correct horse battery staple 42X!".utf8).write(to: URL(fileURLWithPath: password))
    chmod(password, 0o600)
    let secured = try Program.run(
      Program.datavault,
      ["secure", "--home", scratch.path("home"), "--new-password-file", password])
    try #require(secured.status == 0, "\(secured.errors)")
    return password
  }
}
