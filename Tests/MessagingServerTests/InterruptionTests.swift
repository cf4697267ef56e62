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
        Program.datavaultd, scratch.path("home"), String(count),
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
    let password = try ServerProgram.secure(scratch)
    try await interrupt(
      "lock", setting("DATAVAULT_SERVER_LOCKS") ?? 5, [Program.datavault, password])
  }

  @Test func `the memory of a sealed server has no key of a vault, a database or an application`()
    async throws
  {
    let server = try ServerProgram(in: scratch)
    #expect(try server.publish("1".utf8, to: "c").contains("Sent"))
    let open = try server.image("open")
    #expect(open.contains(Array(server.keys.secretKey.utf8)))
    #expect(!open.expandedKeys().isEmpty)
    let locked = try Program.run(
      Program.datavault, ["lock", "messaging", "--home", server.home])
    #expect(locked.status == 0, "\(locked.errors)")
    try await eventually { try server.publish("1".utf8, to: "c").contains("locked") }
    // What was answered last still releases its part.
    try await eventually("no key is in the memory") {
      let sealed = try server.image("sealed")
      return !sealed.contains(Array(server.keys.secretKey.utf8)) && sealed.expandedKeys().isEmpty
    }
  }

  /// DATAVAULT_STOMP_KILLS: how often the server is killed; default: 20.
  @Test(.enabled(if: STOMPClient.python != nil, "stomp.py is not installed"))
  func `kill -9 loses and repeats nothing of STOMP workers, and Pusher's clients come back`()
    async throws
  {
    struct Totals: Decodable {
      let interruptions, acknowledged, lost, undone, repeated: Int
      let listeners, absent, heard, repeatedEvents, unorderedEvents: Int
      let seconds: Double
    }
    let count = setting("DATAVAULT_STOMP_KILLS") ?? 20
    let arguments =
      [
        "-W", "ignore", Repository.path("Tests/ReferenceReaders/stomp_interruptions.py"),
        Program.datavaultd, scratch.path("home"), String(count),
      ] + (PusherClient.python.map { [$0] } ?? [])
    let python = try #require(STOMPClient.python)
    let program = try await PubNubClient.onBlockingThread { try Program.run(python, arguments) }
    try #require(!program.output.isEmpty, "\(program.errors)")
    let totals = try JSONDecoder().decode(Totals.self, from: Data(program.output))
    print("server STOMP runs: \(program.text.trimmingCharacters(in: .newlines))")
    #expect(totals.interruptions == count)
    #expect(totals.acknowledged > count)
    #expect(totals.lost == 0)
    #expect(totals.undone == 0)
    #expect(totals.repeated == 0)
    // They get what passes while they are connected: at most once, and in order.
    #expect(totals.listeners == (PusherClient.python == nil ? 0 : 2))
    #expect(totals.absent == 0)
    #expect(totals.listeners == 0 || totals.heard > count)
    #expect(totals.repeatedEvents == 0)
    #expect(totals.unorderedEvents == 0)
    // Leases that the killed server left end 30 seconds after they began, or were extended; the clients wait 35.
    #expect(totals.seconds < 45)
  }
}
