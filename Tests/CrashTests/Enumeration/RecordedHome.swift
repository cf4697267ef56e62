import DataVault
import DataVaultTesting
import FaultVFS
import FileLayer
import FileRecording
import Foundation
import SystemPackage
import TestSupport
import VaultCrypto
import VaultedDatabase

/// A home under recording, vault and database in one record, and what a kill or a power cut at each step leaves of it.
struct RecordedHome {
  /// The home after a cut.
  struct State {
    let place: String
    let files: [FilePath: [UInt8]]
    /// The marks until then.
    let notes: [String]
  }

  let recorder = FileRecorder()
  private let scratch = ScratchFolder()
  private var root: FilePath { scratch("home") }

  var home: DataVaultHome {
    DataVaultHome(
      root, fileSystem: RecordingFileSystem(recorder: recorder), vaultParameters: .cheap,
      baseVFS: RecordingVFS(recorder).name)
  }

  /// Makes the messaging vault of the home.
  func makeVault(of home: DataVaultHome) async throws -> Vault {
    try await Vault.create(
      .messaging, in: home.store, credentials: credentials("long secret"), parameters: .cheap)
  }

  /// Compares what is found in states of the home with the marks until then.
  ///
  /// - Parameters:
  ///   - stateCount: about how many of the states to try.
  ///   - mark: where they begin.
  ///   - failure: what it means if `texts` throws.
  ///   - texts: the messages of a state.
  func check(
    stateCount: Int, from mark: String, failure: String,
    _ texts: (State) async throws -> [String]
  ) async -> CrashEnumeration.Totals {
    var totals = CrashEnumeration.Totals()
    for state in states(atMost: stateCount, from: mark) {
      do {
        let texts = try await texts(state)
        let finding = Self.finding(texts, state.notes)
        totals.add(
          finding.map { StateChecker.Verdict.wrong("\($0): \(texts), \(state.notes)") } ?? .right,
          state.place)
      } catch {
        totals.add(.lost("\(failure): \(error)"), state.place)
      }
    }
    return totals
  }

  /// Evenly chosen states; equal homes with equal notes count once.
  private func states(atMost stateCount: Int, from mark: String) -> [State] {
    let losses: [(String, DiskReplay.Loss)] = [
      ("killed", .nothing), ("power cut", .everythingUnsynchronized),
      ("names before contents", .unsynchronizedContents),
    ]
    let events = recorder.events
    let start = events.firstIndex(of: .mark(mark)) ?? 0
    let step = max(1, (events.count - start) * losses.count / max(stateCount, 1))
    var replay = DiskReplay(events[..<start])
    var notes: [String] = []
    var seen: Set<Int> = []
    var states: [State] = []
    for (index, event) in events.enumerated().dropFirst(start) {
      replay.apply(event)
      if case .mark(let note) = event { notes.append(note) }
      for (number, loss) in losses.enumerated()
      where (index * losses.count + number).isMultiple(of: step) {
        let files = replay.files(after: loss.1)
        let named = Dictionary(uniqueKeysWithValues: files.map { ($0.key.string, $0.value) })
        if seen.insert(CrashEnumeration.hash(named, notes.count)).inserted {
          states.append(State(place: "\(loss.0) after \(index + 1)", files: files, notes: notes))
        }
      }
    }
    return states
  }

  /// Puts the files of a state on a disk and opens the vault.
  func withHome<Result>(
    of state: State, _ body: (DataVaultHome, Vault) async throws -> Result
  ) async throws -> Result {
    let scratch = ScratchFolder()
    defer { withExtendedLifetime(scratch) {} }
    let folder = scratch("home")
    let manager = FileManager.default
    try manager.createDirectory(
      atPath: folder.appending("vaults").string, withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o700])
    for (path, bytes) in state.files {
      _ = manager.createFile(
        atPath: folder.string + path.string.dropFirst(root.string.count), contents: Data(bytes),
        attributes: [.posixPermissions: 0o600])
    }
    let home = DataVaultHome(folder, fileSystem: LinuxFileSystem(), vaultParameters: .cheap)
    let vault = try await Vault.get(.messaging, in: home.store, parameters: .cheap)
    try await vault.unlock(with: credentials("long secret"))
    return try await body(home, vault)
  }

  /// The fault of a log, compared with the results that callers got; nil for none.
  static func finding(_ texts: [String], _ notes: [String]) -> String? {
    func noted(_ word: String) -> [String] {
      notes.filter { $0.hasPrefix(word + " ") }.map { String($0.dropFirst(word.count + 1)) }
    }
    let begun = noted("publishing")
    if texts != begun.filter(texts.contains) { return "not what was published, in its order" }
    let possiblyGone = Set(noted("acknowledging"))
    if let missing = noted("published").first(where: {
      !texts.contains($0) && !possiblyGone.contains($0)
    }) {
      return "\(missing) is lost"
    }
    if let back = noted("acknowledged").first(where: texts.contains) {
      return "\(back) was acknowledged"
    }
    return nil
  }
}
