import DataVault
import FileLayer
import SystemPackage
import Testing

/// Interrupts one scenario at each of its calls, in each way, and looks at what is left.
struct FaultEnumeration {
  /// What strikes at a call.
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

  /// One play of the scenario, from its start to its end or its interruption.
  private struct Play {
    let answer: VaultError.Code?
    let events: [FileEvent]
    let files: FileTree
    /// What power cuts in that moment leave, of which nothing was synchronized that could wait.
    let afterPowerCuts: [FileTree]
    let strangers: [String]
  }

  /// How the view of a home begins that cannot be seen whole.
  private static let failure = "lost: "

  private let scenario: CrashScenario
  /// Of equal files, views and next plays are equal.
  private var views: [[UInt8]: String] = [:]
  private var nexts: [[UInt8]: Play] = [:]
  private var old = ""
  private var new = ""
  /// Calls at which the scenario was interrupted.
  private(set) var points: [FileEvent] = []
  /// States in which something was lost, or nobody could go on.
  private(set) var lost = 0

  init(_ scenario: CrashScenario) {
    self.scenario = scenario
  }

  mutating func run() async throws {
    let start = try await prepare()
    let whole = try await play(on: start)
    old = try await view(start)
    new = try await view(whole.files)
    require(old != new, "nothing changes: \(old)")
    for view in [old, new] { require(!view.hasPrefix(Self.failure), view) }
    for disk in whole.afterPowerCuts {
      let view = try await view(disk)
      require(
        view == new || scenario.mayBeForgotten && view == old,
        "acknowledged, and after a power cut: \(view)")
    }
    for (number, event) in whole.events.filter(\.mayFail).enumerated() {
      guard scenario.coversAttempts || !event.isOfAttempts else { continue }
      points.append(event)
      for fault in Fault.allCases {
        let place = "\(fault) at \(number), \(event.name)"
        let play = try await play(
          on: start, fault: fault.planned(at: number), cutsPower: fault == .kill)
        try await judge(play, fault, whole, place)
      }
    }
  }

  private mutating func judge(
    _ play: Play, _ fault: Fault, _ whole: Play, _ place: String
  ) async throws {
    let left = try await view(play.files)
    let isAcknowledged = play.answer == whole.answer && !scenario.mayBeForgotten
    for files in [play.files] + play.afterPowerCuts {
      let view = try await view(files)
      require(isPossible(view), "\(place): \(view)")
      require(!isAcknowledged || view == new, "\(place): acknowledged, and then \(view)")
    }
    if fault != .kill {
      require(
        play.answer == whole.answer || play.answer == .writeFailed,
        "\(place): \(String(describing: play.answer))")
      require(
        !play.files.names.contains(where: \.isTemporary), "\(place): a temporary file is left")
    }
    require(play.strangers.isEmpty, "\(place): not the owner's: \(play.strangers)")
    // Whoever comes next can work, and what was left behind is gone.
    if left == old {
      let next = try await next(after: play.files)
      require(next.answer == whole.answer, "\(place): then \(String(describing: next.answer))")
      let view = try await view(next.files)
      require(view == new, "\(place): then \(view)")
      require(next.files.names == whole.files.names, "\(place): \(next.files.names)")
      require(next.strangers.isEmpty, "\(place): then not the owner's: \(next.strangers)")
    } else if left == new {
      let surplus = play.files.names.subtracting(whole.files.names)
      // A record of attempts without its vault, which making a vault removes.
      require(surplus.allSatisfy(\.isOfAttempts), "\(place): \(surplus)")
    }
  }

  private func isPossible(_ view: String) -> Bool {
    view == old || view == new || scenario.between.contains(view)
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

  private mutating func next(after files: FileTree) async throws -> Play {
    let fingerprint = files.fingerprint
    if let known = nexts[fingerprint] { return known }
    let next = try await play(on: files, cutsPower: false)
    nexts[fingerprint] = next
    return next
  }

  private func play(
    on files: FileTree, fault: FileRecorder.Fault? = nil, cutsPower: Bool = true
  ) async throws -> Play {
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
    return Play(
      answer: answer, events: events, files: try home.files(), afterPowerCuts: disks,
      strangers: try strangers(in: home))
  }

  /// Files that the owner of the home could not open, temporary ones apart, which the next write
  /// removes.
  private func strangers(in home: TemporaryHome) throws -> [String] {
    guard let owner = scenario.owner else { return [] }
    return try home.files().names.filter { name in
      let path = home.path.appending(name)
      return try !name.isTemporary && LinuxFileSystem().status(of: path)?.owner != owner
    }
  }

  /// Seen on a copy, as seeing is an attempt; of equal files once.
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
  /// Whether it keeps the record of attempts.
  var isOfAttempts: Bool {
    switch self {
    case .create(let path), .write(let path, _, _), .synchronize(let path), .rename(let path, _),
      .remove(let path), .changeOwner(let path, _), .lock(let path), .unlock(let path):
      path.string.contains(".retry")
    default: false
    }
  }

  /// Which call it is.
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
