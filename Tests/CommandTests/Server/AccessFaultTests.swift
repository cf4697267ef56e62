import Foundation
import Glibc
import TestSupport
import Testing

/// Changes of access by the command line, with SIGKILL in their middle and on a full disk.
@Suite struct AccessFaultTests {
  /// The name of the channel on which a grant is, by the id of the grant.
  private func channels(_ server: ServerHome) throws -> [String: String] {
    var names: [String: String] = [:]
    for grant in try server.grants() {
      let scope = try #require(grant["scope"] as? [String: String])
      names[try #require(scope["name"])] = try #require(grant["grant"] as? String)
    }
    return names
  }

  /// DATAVAULT_ACCESS_KILLS: how many commands are killed; default: 18.
  @Test
  func `kill -9 of a change of access loses none that was acknowledged, and leaves none half`()
    throws
  {
    let server = try ServerHome()
    let count = setting("DATAVAULT_ACCESS_KILLS") ?? 18
    let seed = SeededRandom.killSeed()
    var random = SeededRandom(seed: seed)
    let rounds = 0..<count
    let removals = rounds.filter { $0 % 3 == 1 }
    try server.run(
      ["grant", "shop", "--write"] + removals.flatMap { ["--channel", "removed\($0)"] }
    ).expect(0)
    let start = ContinuousClock.now
    try server.run("grant", "shop", "--write", "--channel", "kept").expect(0)
    let time = (ContinuousClock.now - start) / .microseconds(1)
    let ids = try channels(server)
    for round in rounds where round % 3 == 2 {
      _ = try server.token("token\(round)", "shop", "--channel", "t", "--write", "--ttl", "9")
    }

    /// A command that changes access, and whether it was acknowledged before it was killed.
    func isAcknowledged(_ arguments: [String]) throws -> Bool {
      let child = try Child(
        arguments + ["--home", server.home.path] + server.home.keySource,
        of: Program.datavaultd)
      // The kill comes at a random moment; most of a command's time is that of opening the vault.
      usleep(UInt32(time / 2) + UInt32(random.next(Int(time))))
      kill(child.id, SIGKILL)
      return child.wait() == 0
    }
    var acknowledged: Set<Int> = []
    for round in rounds {
      let arguments =
        switch round % 3 {
        case 0:
          ["grant", "shop", "--write", "--channel", "one\(round)", "--channel", "two\(round)"]
        case 1: ["grant", "remove", "shop", try #require(ids["removed\(round)"])]
        default:
          ["token", "revoke", "--token-file", server.home.folder.path("token\(round)")]
        }
      if try isAcknowledged(arguments) { acknowledged.insert(round) }
    }
    print("killed changes of access, seed \(seed): \(count - acknowledged.count) of \(count)")

    let left = try channels(server)
    let keys = server.keys
    let path = "/publish/\(keys["publishKey"] ?? "")/\(keys["subscribeKey"] ?? "")/0/"
    try server.serving { client in
      func isAllowed(_ channel: String, _ credential: String = "") throws -> Bool {
        try client.status("\(path)\(channel)/0/1?uuid=u\(credential)") == 200
      }
      #expect(try isAllowed("kept"))
      for round in rounds {
        let wasDone: Bool
        switch round % 3 {
        case 0:
          wasDone = try isAllowed("one\(round)")
          #expect(try isAllowed("two\(round)") == wasDone, "half a grant in round \(round)")
          #expect((left["one\(round)"] != nil) == wasDone)
        case 1: wasDone = try !isAllowed("removed\(round)")
        default:
          let token = try #require(server.home.folder.contents(of: "token\(round)")).dropLast()
          wasDone = try !isAllowed("t", "&auth=" + token.replacing("=", with: "%3D"))
        }
        if acknowledged.contains(round) { #expect(wasDone, "round \(round) was lost") }
      }
    }
  }

  @Test(.enabled(if: SmallDisk.isAvailable, SmallDisk.skipReason))
  func `a change of access on a full disk fails and loses none, and succeeds when there is space`()
    throws
  {
    let server = try ServerHome()
    let home = server.home.path
    try server.run("grant", "shop", "--channel", "kept", "--channel", "other", "--write").expect(0)
    let ids = try channels(server)
    let aside = server.home.folder.path("aside")
    try FileManager.default.moveItem(atPath: home, toPath: aside)
    let disk = try SmallDisk(at: home, byteCount: 4 << 20)
    for name in try FileManager.default.contentsOfDirectory(atPath: aside) {
      try FileManager.default.copyItem(atPath: "\(aside)/\(name)", toPath: "\(home)/\(name)")
    }
    // From a disk on which the database does not open to one on which only the commit lacks space.
    var (freeByteCount, refusals) = (0, "")
    while freeByteCount < 1 << 20 {
      try disk.fill(leaving: freeByteCount)
      let granted = try server.run("grant", "shop", "--channel", "at\(freeByteCount)", "--write")
      if granted.status == 0 { break }
      granted.expect(74, of: "\(freeByteCount)", says: "the disk is full", "hint: ")
      refusals += granted.errors
      try server.run("grant", "remove", "shop", #require(ids["kept"])).expect(74)
      freeByteCount = max(freeByteCount + 8192, 40 << 10)
    }
    #expect(refusals.contains("nothing was changed"))
    try disk.empty()
    #expect(try Set(channels(server).keys) == ["kept", "other", "at\(freeByteCount)"])
  }
}
