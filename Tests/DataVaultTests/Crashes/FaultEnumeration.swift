import DataVault
import FileLayer
import FileRecording
import SystemPackage
import Testing

/// Interrupts one scenario at each of its calls, in each way, and checks the state that remains.
struct FaultEnumeration {
  enum Fault: CaseIterable {
    case kill, diskFull, deviceError

    func planned(at number: Int) -> FileRecorder.Fault {
      switch self {
      case .kill: .crash(atEvent: number)
      case .diskFull: .failure(atEvent: number, .noSpace)
      case .deviceError: .failure(atEvent: number, .ioError)
      }
    }
  }

  /// One run of the scenario, from its start to its end or its interruption.
  private struct Run {
    let answer: VaultError.Code?
    let events: [FileEvent]
    let files: FileTree
    /// The files after a power cut at that time, which loses everything unsynchronized.
    let afterPowerCuts: [FileTree]
    let foreignFiles: [String]
  }

  /// The prefix of the view of a home that cannot be read completely.
  private static let failure = "lost: "

  private let scenario: CrashScenario
  /// Caches: equal files have equal views and equal next runs.
  private var views: [[UInt8]: String] = [:]
  private var nexts: [[UInt8]: Run] = [:]
  private var old = ""
  private var new = ""
  /// The calls at which the scenario was interrupted.
  private(set) var points: [FileEvent] = []
  /// The number of states in which something was lost or the next change failed.
  private(set) var lost = 0

  init(_ scenario: CrashScenario) { self.scenario = scenario }

  mutating func run() async throws {
    let start = try await prepare()
    let whole = try await run(on: start)
    old = try await view(start)
    new = try await view(whole.files)
    require(old != new, "nothing changes: \(old)")
    for view in [old, new] { require(!view.hasPrefix(Self.failure), view) }
    for disk in whole.afterPowerCuts {
      let view = try await view(disk)
      require(
        view == new || scenario.canBeLost && view == old,
        "acknowledged, and after a power cut: \(view)")
    }
    for (number, event) in whole.events.filter(\.canFail).enumerated() {
      guard scenario.coversAttempts || !event.isOfAttempts else { continue }
      points.append(event)
      for fault in Fault.allCases {
        let place = "\(fault) at \(number), \(event.name)"
        let run = try await run(
          on: start, fault: fault.planned(at: number), cutsPower: fault == .kill)
        try await check(run, fault, whole, place)
      }
    }
  }

  private mutating func check(
    _ run: Run, _ fault: Fault, _ whole: Run, _ place: String
  ) async throws {
    let left = try await view(run.files)
    let isAcknowledged = run.answer == whole.answer && !scenario.canBeLost
    for files in [run.files] + run.afterPowerCuts {
      let view = try await view(files)
      require(([old, new] + scenario.between).contains(view), "\(place): \(view)")
      require(!isAcknowledged || view == new, "\(place): acknowledged, and then \(view)")
    }
    if fault != .kill {
      require(
        run.answer == whole.answer || run.answer == .writeFailed,
        "\(place): \(String(describing: run.answer))")
      require(!run.files.names.contains(where: \.isTemporary), "\(place): a temporary file is left")
    }
    require(run.foreignFiles.isEmpty, "\(place): not the owner's: \(run.foreignFiles)")
    // The next change must succeed and remove the leftovers.
    if left == old {
      let next = try await next(after: run.files)
      require(next.answer == whole.answer, "\(place): then \(String(describing: next.answer))")
      let view = try await view(next.files)
      require(view == new, "\(place): then \(view)")
      require(next.files.names == whole.files.names, "\(place): \(next.files.names)")
      require(next.foreignFiles.isEmpty, "\(place): then not the owner's: \(next.foreignFiles)")
    } else if left == new {
      let surplus = run.files.names.subtracting(whole.files.names)
      // A record of attempts can outlive its vault; creating a vault removes it.
      require(surplus.allSatisfy(\.isOfAttempts), "\(place): \(surplus)")
    }
  }

  private mutating func require(_ isRight: Bool, _ what: String) {
    guard !isRight else { return }
    lost += 1
    Issue.record("\(scenario.testDescription): \(what)")
  }

  private func prepare() async throws -> FileTree {
    let home = TemporaryHome(in: TemporaryHome.quickBase)
    try await scenario.before(CrashScene(home: home))
    var tree = try home.files()
    if scenario.makesLockFiles { tree.files = tree.files.filter { !$0.key.hasSuffix(".lock") } }
    return tree
  }

  private mutating func next(after files: FileTree) async throws -> Run {
    let fingerprint = files.fingerprint
    if let known = nexts[fingerprint] { return known }
    let next = try await run(on: files, cutsPower: false)
    nexts[fingerprint] = next
    return next
  }

  private func run(
    on files: FileTree, fault: FileRecorder.Fault? = nil, cutsPower: Bool = true
  ) async throws -> Run {
    let home = try TemporaryHome(holding: files, owner: scenario.owner)
    let recorder = FileRecorder(fault: fault)
    let scene = CrashScene(home: home, fileSystem: RecordingFileSystem(recorder: recorder))
    let answer = await code { try await scenario.change(scene) }
    let events = recorder.events
    var disks: [FileTree] = []
    if cutsPower {
      let replay = DiskReplay(events, initialFiles: home.absolute(files))
      disks = [DiskReplay.Loss.everythingUnsynchronized, .unsynchronizedContents].map {
        home.relative(replay.files(after: $0))
      }
    }
    return Run(
      answer: answer, events: events, files: try home.files(), afterPowerCuts: disks,
      foreignFiles: try foreignFiles(in: home))
  }

  /// Files that the owner of the home could not open, except temporary files, which the next write
  /// removes.
  private func foreignFiles(in home: TemporaryHome) throws -> [String] {
    guard let owner = scenario.owner else { return [] }
    return try home.files().names.filter { name in
      let path = home.path.appending(name)
      return try !name.isTemporary && LinuxFileSystem().status(of: path)?.owner != owner
    }
  }

  /// The view of these files, taken on a copy because viewing is an attempt, and cached.
  private mutating func view(_ files: FileTree) async throws -> String {
    let fingerprint = files.fingerprint
    if let known = views[fingerprint] { return known }
    let home = try TemporaryHome(holding: files)
    let view: String
    do {
      view = try await CrashScene(home: home, isLater: true).view()
    } catch let error as VaultError {
      view = "\(Self.failure)\(error)"
    }
    views[fingerprint] = view
    return view
  }
}

extension String {
  fileprivate var isTemporary: Bool { hasSuffix(".new") }
  fileprivate var isOfAttempts: Bool { contains(".retry") }
}

extension FileEvent {
  /// Whether the event belongs to the record of attempts.
  var isOfAttempts: Bool {
    switch self {
    case .create(let path), .write(let path, _, _), .synchronize(let path), .rename(let path, _),
      .remove(let path), .changeOwner(let path, _), .lock(let path), .unlock(let path):
      path.string.contains(".retry")
    default: false
    }
  }

  var name: String {
    switch self {
    case .create: "create"
    case .write: "write"
    case .truncate: "truncate"
    case .changeOwner: "chown"
    case .synchronize: "fsync"
    case .rename: "rename"
    case .remove: "remove"
    case .createDirectory: "mkdir"
    case .synchronizeDirectory: "fsync of a directory"
    case .lock: "lock"
    case .unlock: "unlock"
    case .mark: "mark"
    }
  }
}
