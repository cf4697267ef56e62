import DataVault
import DataVaultTesting
import FaultVFS
import FileLayer
import FileRecording
import Foundation
import MessagingQueue
import SystemPackage
import TestSupport
import Testing
import VaultedDatabase

/// An engine from its first start over its stop to the next start, on a home that fails at each of
/// its steps, those of the vault included.
@Suite struct LifeFaultTests {
  @Test func `a failed start or stop can be repeated, and no message is lost`() async throws {
    let start = EngineHome()
    await (try start.makeVault()).lock()
    let vaultFile = try start.vaultFile
    let firstLife = try await Self.rehearse(vaultFile, lives: 1)
    let bothLives = try await Self.rehearse(vaultFile, lives: 2)
    var (runs, lost) = (0, 0)
    for number in 0..<bothLives {
      let isFirst = number < firstLife
      let kinds: [FileRecorder.Fault] = [
        .failure(atEvent: number, .noSpace), .failures(fromEvent: number, .ioError),
        .failure(atEvent: number, .ioError), .failures(fromEvent: number, .noSpace),
        .failures(fromEvent: number, .readOnlyFileSystem),
      ]
      let turn = isFirst || number % 2 == 0 ? [kinds[number % 5]] : []
      for fault in Exhaustive.isRequested ? kinds : turn {
        let run = try LifeRun(vaultFile, lives: isFirst ? 1 : 2, fault: fault)
        runs += 1
        do {
          let isRight = try await run.run() == run.expected
          #expect(isRight, "\(fault)")
          if !isRight { lost += 1 }
        } catch {
          lost += 1
          Issue.record("\(fault): \(error)")
        }
        #expect(run.told.isDisjoint(with: LifeRun.wrongAnswers), "\(fault)")
      }
    }
    print("life faults: \(bothLives) interruption points, \(runs) runs, lost: \(lost)")
    #expect(firstLife > 60 && bothLives > firstLife)
  }

  /// How many steps of the disk can fail.
  private static func rehearse(_ vaultFile: Data, lives: Int) async throws -> Int {
    let run = try LifeRun(vaultFile, lives: lives)
    #expect(try await run.run() == run.expected)
    #expect(run.told.isEmpty)
    return run.recorder.failableEventCount
  }
}

/// One or two starts of an engine: the first publishes two messages, the second acknowledges one.
private final class LifeRun {
  let recorder: FileRecorder
  private let lives: Int
  /// The texts at the end.
  var expected: [String] { lives == 1 ? ["a", "b"] : ["b"] }
  /// The codes of all failures.
  private(set) var told: Set<String> = []
  private let scratch = ScratchFolder(in: RecordedEngine.base.string)
  private let home: DataVaultHome
  private let cleanHome: DataVaultHome

  /// Codes that a failing disk must not give.
  static let wrongAnswers: Set = [
    "damaged", "rolledBack", "databaseMissing", "databaseMismatch", "keyMissing", "wrongPassword",
    "plainDatabase", "newerVersion", "vaultMissing", "vaultLocked", "doesNotExist",
  ]

  init(_ vaultFile: Data, lives: Int, fault: FileRecorder.Fault? = nil) throws {
    self.lives = lives
    recorder = FileRecorder(fault: fault)
    try FileManager.default.createDirectory(
      atPath: scratch.path("vaults"), withIntermediateDirectories: false,
      attributes: [.posixPermissions: 0o700])
    try scratch.file("vaults/messaging.vault", vaultFile)
    home = DataVaultHome(
      scratch.path, fileSystem: RecordingFileSystem(recorder: recorder),
      vaultParameters: .cheap, baseVFS: RecordingVFS(recorder).name)
    cleanHome = DataVaultHome(
      scratch.path, fileSystem: LinuxFileSystem(), vaultParameters: .cheap)
  }

  /// Runs the starts and returns the texts that a receiver finds at the end.
  func run() async throws -> [String] {
    let vault = try await again { [home] in try await Self.vault(home) }
    var engine = try await again { [home] in
      try await MessagingEngine.start(home, vault: vault)
    }
    for text in ["a", "b"] {
      let message = FaultScenario.message(text, to: .orders)
      _ = try await again { [engine] in try await engine.publish(message) }
    }
    await stop(engine)
    if lives == 2 {
      engine = try await again { [home] in try await MessagingEngine.start(home, vault: vault) }
      try await acknowledgeOne(engine)
      await stop(engine)
    }
    recorder.lift()

    let last = try await MessagingEngine.start(cleanHome, vault: Self.vault(cleanHome))
    let texts = try await last.receive(from: .orders, maximumCount: 10).map(\.text)
    try await last.stop()
    return texts
  }

  private func acknowledgeOne(_ engine: MessagingEngine) async throws {
    let token = try await again {
      // A message that a failed attempt has leased is ready again.
      try await eventually {
        try await engine.receive(from: .orders, lease: .milliseconds(1)).first?.token
      }
    }
    try await again {
      do throws(EngineError) {
        try await engine.acknowledge([token])
      } catch {
        // The earlier attempt, whose outcome was unknown, succeeded.
        if error.code != .unknownLease || told.isEmpty { throw error }
      }
    }
  }

  private static func vault(_ home: DataVaultHome) async throws -> Vault {
    let vault = try await Vault.get(.messaging, in: home.store, parameters: home.vaultParameters)
    try await vault.unlock(with: EngineHome.credentials)
    return vault
  }

  /// Stops the engine; after an error it has stopped, too.
  private func stop(_ engine: MessagingEngine) async {
    do throws(EngineError) {
      try await engine.stop()
    } catch {
      note(error)
      recorder.lift()
    }
  }

  private func again<Result>(_ body: () async throws -> Result) async throws -> Result {
    do {
      return try await body()
    } catch {
      note(error)
      recorder.lift()
      return try await body()
    }
  }

  private func note(_ error: any Error) {
    switch error {
    case let error as EngineError: told.insert(error.code.description)
    case let error as VaultError: told.insert("\(error.code)")
    default: told.insert("\(error)")
    }
  }
}
