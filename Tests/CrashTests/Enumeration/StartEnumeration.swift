import DataVault
import DataVaultTesting
import FaultVFS
import FileLayer
import FileRecording
import Foundation
import MessagingQueue
import SystemPackage
import TestSupport
import VaultCrypto
import VaultedDatabase

/// Records a home from its first start on, vault and database in one record.
///
/// Then it starts an engine on what a kill or a power cut at each step leaves.
struct StartEnumeration {
  /// A home after a cut.
  private struct State {
    let place: String
    let files: [FilePath: [UInt8]]
    let notes: [String]
  }

  private let scratch = ScratchFolder()
  private var root: FilePath { scratch("home") }
  private let recorder = FileRecorder()

  /// - Parameter stateCount: about how many of the states to try.
  func callAsFunction(stateCount: Int) async throws -> CrashEnumeration.Totals {
    try await record()
    var totals = CrashEnumeration.Totals()
    for state in states(atMost: stateCount) {
      do {
        let texts = try await texts(state)
        let finding = Self.finding(texts, state.notes)
        totals.add(
          finding.map { StateChecker.Verdict.wrong("\($0): \(texts), \(state.notes)") } ?? .right,
          state.place)
      } catch {
        totals.add(.lost("no engine starts: \(error)"), state.place)
      }
    }
    return totals
  }

  /// Two starts of an engine that records an anchor with every second commit; the first ends
  /// cleanly.
  private func record() async throws {
    let home = DataVaultHome(
      root, fileSystem: RecordingFileSystem(recorder: recorder),
      vaultParameters: .cheap, baseVFS: RecordingVFS(recorder).name)
    let vault = try await Vault.create(
      .messaging, in: home.store, credentials: credentials("long secret"), parameters: .cheap)
    recorder.mark("made")
    var configuration = EngineConfiguration()
    configuration.anchorCommitCount = 2
    let orders = try Channel("orders")
    for life in 0..<2 {
      let engine = try await MessagingEngine.start(home, vault: vault, configuration: configuration)
      for number in 0..<5 {
        let text = "\(life)-\(number)"
        recorder.mark("publishing \(text)")
        try await engine.publish(Message(channel: orders, payload: Array(text.utf8)))
        recorder.mark("published \(text)")
      }
      for delivery in try await engine.receive(from: orders, maximumCount: 2) {
        let text = String(decoding: delivery.payload, as: UTF8.self)
        recorder.mark("acknowledging \(text)")
        try await engine.acknowledge([delivery.token])
        recorder.mark("acknowledged \(text)")
      }
      try await engine.stop()
    }
  }

  /// Evenly chosen states; equal homes with equal notes count once.
  private func states(atMost stateCount: Int) -> [State] {
    let losses: [(String, DiskReplay.Loss)] = [
      ("killed", .nothing), ("power cut", .everythingUnsynchronized),
      ("names before contents", .unsynchronizedContents),
    ]
    let events = recorder.events
    let start = events.firstIndex(of: .mark("made")) ?? 0
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

  /// The log that an engine finds.
  private func texts(_ state: State) async throws -> [String] {
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
    let engine = try await MessagingEngine.start(home, vault: vault)
    let texts = try await engine.history(of: Channel("orders"))
      .map { String(decoding: $0.payload, as: UTF8.self) }
    try await engine.stop()
    return texts
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
