import Foundation
import TestSupport
import Testing

/// The built `datavaultd` between a service manager, an operator and clients: `server_operations.py`.
@Suite struct OperationsProgramTests {
  private struct Seen: Decodable {
    let unlocked, reloaded, locked: Bool
    let metricsForClients, exit, secondExit, acknowledged, lost, requests, watchdog: Int
    let openPolls, leases, connections, published, stopSeconds: Double
    let broken, reports, revealed, audit: [String]
    let poll: [Int]
  }

  private let scratch = ScratchFolder()

  @Test
  func `datavaultd reports its states, and a stop under load loses no acknowledged message`()
    async throws
  {
    let password = try scratch.file("password", "correct horse battery staple".utf8)
    let home = scratch.path("home")
    let secured = try Program.run(
      Program.datavault, ["secure", "--home", home, "--new-password-file", password])
    try #require(secured.status == 0, "\(secured.errors)")
    let script = Repository.path("Tests/ReferenceReaders/server_operations.py")
    let program = try await PubNubClient.onBlockingThread {
      try Program.run(
        "/usr/bin/python3",
        [script, Program.datavault, Program.built("datavaultd"), home, password])
    }
    try #require(program.status == 0, "\(program.errors)")
    let seen = try JSONDecoder().decode(Seen.self, from: Data(program.output))
    print("server operations: \(program.text)")

    #expect(seen.unlocked && seen.reloaded && seen.locked)
    #expect(seen.metricsForClients == 404)
    let states = ["sealed: run datavault unlock messaging", "serving"].map { "STATUS=\($0)" }
    #expect(seen.reports.first == "READY=1\n\(states[0])")
    #expect(seen.reports.dropFirst().first == states[1])
    #expect(seen.reports.contains(states[0]))
    #expect(seen.reports.last?.hasPrefix("STOPPING=1\n") == true)
    #expect(seen.watchdog > 1)

    #expect(seen.openPolls == 1)
    #expect(seen.leases == 3)
    #expect(seen.connections >= 16)
    #expect(seen.published > 100)
    #expect(seen.exit == 0)
    #expect(seen.stopSeconds < 10)
    #expect(seen.poll == [200])
    #expect(seen.broken == [])
    #expect(seen.acknowledged > 300)
    #expect(seen.lost == 0)
    #expect(seen.secondExit == 0)

    #expect(seen.requests >= seen.acknowledged)
    #expect(seen.revealed == [])
    #expect(
      seen.audit.filter { $0 != "take-changes" } == [
        "start", "unlock", "lock", "unlock", "stop", "unlock", "start", "stop",
      ])
  }
}
