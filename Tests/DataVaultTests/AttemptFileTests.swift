import DataVault
import DataVaultTesting
import FileLayer
import FileRecording
import Glibc
import SystemPackage
import TestSupport
import Testing

/// The record of attempts on disk: its form, its owner, and the effect of interruptions.
@Suite struct AttemptFileTests {
  let home = TemporaryHome()
  let vaults: ClockedVaults

  private var path: FilePath { home.directory.appending("messaging.retry") }

  init() { vaults = ClockedVaults(home.store) }

  /// A home with a vault that had one failed attempt.
  private func failedOnce(
    policy: VaultPolicy? = nil
  ) async throws -> (TemporaryHome, ClockedVaults) {
    let home = TemporaryHome()
    let vaults = ClockedVaults(home.store)
    _ = try await vaults.make(policy: policy)
    let record = #"{"version":1,"failures":1,"retryAt":null,"openedAt":null}"# + "\n"
    try home.store.writeAttempts(Array(record.utf8), for: .messaging, durably: true)
    return (home, vaults)
  }

  /// The error of an attempt whose steps on the disk a recorder sees; nil when the vault opens.
  private func attempt(
    _ password: String, at home: TemporaryHome, _ vaults: ClockedVaults, over recorder: FileRecorder
  ) async throws -> VaultError.Code? {
    let vault = try await Vault.get(
      .messaging, in: home.recording(recorder), parameters: vaults.parameters)
    return await code { try await vault.unlock(with: credentials(password)) }
  }

  @Test
  func `the record file matches docs/reference/vault-format.md and belongs to its owner alone`()
    async throws
  {
    _ = try await vaults.make()
    #expect(await vaults.attempt("right") == nil)
    let opened = vaults.time.now.nanoseconds / 1_000_000
    #expect(
      try vaults.record()
        == "{\"version\":1,\"failures\":0,\"retryAt\":null,\"openedAt\":\(opened)}\n")
    await vaults.fail(times: 4)
    let failed = vaults.time.now.nanoseconds / 1_000_000
    #expect(
      try vaults.record()
        == "{\"version\":1,\"failures\":4,\"retryAt\":\(failed + 2000),\"openedAt\":\(opened)}\n")
    for name in ["messaging.retry", "messaging.retry.lock"] {
      let status = try #require(try LinuxFileSystem().status(of: home.directory.appending(name)))
      #expect(status.permissions == [.ownerReadWrite], "\(name)")
    }
    #expect(try await Vault.list(in: home.store) == [.messaging])
  }

  @Test(.enabled(if: geteuid() == 0, "only root can give files away"))
  func `files that root's attempts create in a daemon's home belong to the daemon`() async throws {
    _ = try await vaults.make()
    let daemon = FileOwner(userID: 12345, groupID: 54321)
    for path in [home.file(), home.directory] {
      chown(path.string, daemon.userID, daemon.groupID)
    }
    for password in ["wrong", "right"] {
      _ = await vaults.attempt(password)
      for name in ["messaging.retry", "messaging.retry.lock"] {
        let status = try LinuxFileSystem().status(of: home.directory.appending(name))
        #expect(status?.owner == daemon, "\(name) after \(password)")
      }
    }
  }

  @Test func `a link in the record's place is replaced and never followed`() async throws {
    _ = try await vaults.make()
    let elsewhere = home.path.appending("elsewhere")
    try LinuxFileSystem().replace(
      elsewhere, with: [1, 2, 3], permissions: .ownerReadWrite, owner: nil)
    for password in ["wrong", "right"] {
      unlink(path.string)
      symlink(elsewhere.string, path.string)
      _ = await vaults.attempt(password)
      #expect(try LinuxFileSystem().read(elsewhere, maximumByteCount: 9) == [1, 2, 3])
      #expect(try LinuxFileSystem().status(of: path)?.kind == .regular)
    }
  }

  @Test func `a directory in the record's place lets the owner in and answers no wrong password`()
    async throws
  {
    _ = try await vaults.make()
    mkdir(path.string, 0o700)
    #expect(await vaults.attempt("wrong") == .writeFailed)
    #expect(await vaults.attempt("right") == nil)
    rmdir(path.string)
  }

  @Test(arguments: [Errno.readOnlyFileSystem, .noSpace, .ioError])
  func `a failed step never locks the owner out and never answers an unrecorded failure`(
    errno: Errno
  ) async throws {
    for password in ["right", "wrong"] {
      let stepCount = try await FileRecorder.atEachStep(failing: errno) { recorder, number in
        let (home, vaults) = try await failedOnce()
        let outcome = try await attempt(password, at: home, vaults, over: recorder)
        let record = try vaults.record() ?? ""
        if password == "right" {
          #expect(outcome == nil, "step \(number)")
        } else if outcome == .wrongPassword {
          #expect(record.contains(#""failures":2"#), "step \(number)")
        } else {
          #expect(outcome == .writeFailed, "step \(number)")
        }
        #expect(await vaults.attempt("right") == nil, "after step \(number)")
        #expect(try home.tree().keys.allSatisfy { !$0.string.hasSuffix(".new") })
      }
      #expect(stepCount > 4)
    }
  }

  @Test
  func `a kill or power cut at any step loses no answered failure and never locks the owner out`()
    async throws
  {
    for password in ["wrong", "right"] {
      let stepCount = try await FileRecorder.atEachStep { recorder, number in
        let (home, vaults) = try await failedOnce()
        let initial = try home.tree()
        let outcome = try await attempt(password, at: home, vaults, over: recorder)
        for loss in [DiskReplay.Loss.nothing, .everythingUnsynchronized, .unsynchronizedContents] {
          let disk = DiskReplay(recorder.events, initialFiles: initial).files(after: loss)
          let copy = try TemporaryHome(holding: home.relative(disk))
          let after = ClockedVaults(copy.store)
          let record = try after.record() ?? ""
          if password == "wrong" {
            let expected = outcome == .wrongPassword ? [2] : [1, 2]
            #expect(
              expected.contains { record.contains("\"failures\":\($0)") },
              "\(outcome.map(\.description) ?? "opened") at \(number): \(record)")
          }
          #expect(await after.attempt("right") == nil, "\(password) at \(number), \(loss)")
          #expect(copy.path != home.path)
        }
      }
      #expect(stepCount > 4)
    }
  }

  @Test func `a failed attempt is counted even if the process is killed before the fsync`()
    async throws
  {
    // A right secret is answered without waiting for the disk, so killing slower attempts must not
    // help an attacker.
    _ = try await vaults.make()
    let initial = try home.tree()
    let recorder = FileRecorder()
    #expect(try await attempt("wrong", at: home, vaults, over: recorder) == .wrongPassword)
    let events = recorder.events.prefix {
      if case .synchronize = $0 { false } else { true }
    }
    #expect(events.count < recorder.events.count)
    let disk = DiskReplay(Array(events), initialFiles: initial).files(after: .nothing)
    let copy = try TemporaryHome(holding: home.relative(disk))
    #expect(try await ClockedVaults(copy.store).found().status().failedAttemptCount == 1)
  }

  @Test func `a power cut can lose the time of a first opening, and nothing else`() async throws {
    _ = try await vaults.make()
    let initial = try home.tree()
    let recorder = FileRecorder()
    #expect(try await attempt("right", at: home, vaults, over: recorder) == nil)
    #expect(!recorder.events.contains { if case .synchronize = $0 { true } else { false } })
    let disk = DiskReplay(recorder.events, initialFiles: initial)
      .files(after: .unsynchronizedContents)
    let copy = try TemporaryHome(holding: home.relative(disk))
    let after = ClockedVaults(copy.store)
    #expect(try after.record() == "")
    #expect(try await after.found().status().failedAttemptCount == 0)
    #expect(await after.attempt("right") == nil)
    #expect(copy.path != home.path)
  }

  @Test func `an interrupted wipe leaves the whole vault or none`() async throws {
    let stepCount = try await FileRecorder.atEachStep { recorder, number in
      let (home, vaults) = try await failedOnce(policy: .lax { $0.retryLimit = 1 })
      let outcome = try await attempt("wrong", at: home, vaults, over: recorder)
      #expect(outcome != nil && outcome != .wrongPassword, "step \(number)")
      #expect((outcome == .deletedByRetryLimit) == !recorder.hasCrashed, "step \(number)")
      if try await Vault.exists(.messaging, in: home.store) {
        #expect(await vaults.attempt("right") == nil, "step \(number)")
      }
      if !recorder.hasCrashed {
        let names = try LinuxFileSystem().entries(of: home.directory)
        #expect(names == ["messaging.lock", "messaging.retry.lock"])
      }
    }
    #expect(stepCount > 8)
  }
}
