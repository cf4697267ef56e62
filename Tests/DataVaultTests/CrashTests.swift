import DataVault
import DataVaultTesting
import FileLayer
import SystemPackage
import Testing
import VaultCrypto

/// One change of a vault, and how the state before is told from the state after.
struct CrashScenario: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let before: @Sendable (FileVaultStore) async throws -> Void
  let change: @Sendable (FileVaultStore) async throws -> Void
  /// What can be seen of a home: equal views, equal states.
  let view: @Sendable (FileVaultStore) async throws -> String

  init(
    _ name: String, before: @escaping @Sendable (FileVaultStore) async throws -> Void,
    change: @escaping @Sendable (FileVaultStore) async throws -> Void,
    view: @escaping @Sendable (FileVaultStore) async throws -> String = Self.view
  ) {
    testDescription = name
    self.before = before
    self.change = change
    self.view = view
  }

  static let passwords = ["old", "new"]

  static func open(_ store: FileVaultStore, _ password: String = "old") async throws -> Vault {
    let vault = try await CheapVault.get(.messaging, in: store)
    if password == "standard" {
      try await vault.unlock(with: .standard)
    } else {
      try await vault.unlock(with: credentials(password))
    }
    return vault
  }

  /// Which password opens the vault, its items, its binding, how many keys it has.
  static func view(_ store: FileVaultStore) async throws -> String {
    guard try await Vault.exists(.messaging, in: store) else { return "absent" }
    // The standard credentials first: they are no attempt, and too many wrong ones would back off.
    for password in ["standard", "old", "new"] {
      let vault = try await CheapVault.get(.messaging, in: store)
      do throws(VaultError) {
        if password == "standard" {
          try await vault.unlock(with: .standard)
        } else {
          try await vault.unlock(with: credentials(password))
        }
      } catch {
        if error.code == .wrongPassword { continue }
        throw error
      }
      var view = [password]
      for name in try await vault.itemNames() {
        view.append("\(name.name)=\(try await vault.text(name.name))")
      }
      if let binding = try await vault.binding() {
        let keys = try await vault.databaseKeys()
        let hasPending = keys.pending != nil
        view.append("\(binding.state) pending=\(hasPending)")
      }
      return view.joined(separator: " ")
    }
    return "no password opens it"
  }

  static func made(_ password: String) -> @Sendable (FileVaultStore) async throws -> Void {
    { store in
      let vault = try await make(store, password)
      try await vault.setText("1", for: "kept")
    }
  }

  private static func make(_ store: FileVaultStore, _ password: String) async throws -> Vault {
    if password == "standard" {
      try await CheapVault.create(.messaging, in: store, credentials: .standard)
    } else {
      try await CheapVault.create(.messaging, in: store, credentials: credentials(password))
    }
  }

  static func bound(_ password: String) -> @Sendable (FileVaultStore) async throws -> Void {
    { store in
      try await made(password)(store)
      let vault = try await open(store, password)
      _ = try await vault.beginBinding(databaseID: Array(1...8)).byteCount
      try await vault.completeBinding()
    }
  }

  /// With a record of attempts.
  static let opened: @Sendable (FileVaultStore) async throws -> Void = { store in
    try await made("old")(store)
    _ = try await open(store)
  }

  static let all: [CrashScenario] =
    [
      CrashScenario("create", before: { _ in }) { _ = try await make($0, "old") },
      CrashScenario(
        "create in a home that exists",
        before: { store in
          _ = try await CheapVault.create(
            VaultID("other"), in: store, credentials: credentials("x"))
        }
      ) { _ = try await make($0, "old") },
      CrashScenario("set an item", before: made("old")) {
        try await open($0).setText("2", for: "added")
      },
      CrashScenario("replace an item", before: made("old")) {
        try await open($0).setText("2", for: "kept")
      },
      CrashScenario("remove an item", before: made("old")) {
        try await open($0).removeItem("kept")
      },
      CrashScenario("change the password", before: made("old")) {
        try await open($0).changePassword(to: credentials("new"))
      },
      CrashScenario("change the password of a locked vault", before: made("old")) {
        try await CheapVault.get(.messaging, in: $0).changePassword(
          from: credentials("old"), to: credentials("new"))
      },
      CrashScenario("secure", before: bound("standard")) {
        try await open($0, "standard").secure(to: credentials("new"))
      },
      CrashScenario("begin a binding", before: made("old")) {
        _ = try await open($0).beginBinding(databaseID: Array(1...8)).byteCount
      },
      CrashScenario(
        "complete a binding",
        before: { store in
          try await made("old")(store)
          _ = try await open(store).beginBinding(databaseID: Array(1...8)).byteCount
        }, change: { try await open($0).completeBinding() }),
      CrashScenario("prepare a pending key", before: bound("old")) {
        try await open($0).storePendingKey(.random(byteCount: 32))
      },
      CrashScenario(
        "promote the pending key",
        before: { store in
          try await bound("old")(store)
          try await open(store).storePendingKey(.random(byteCount: 32))
        }, change: { try await open($0).promotePendingKey() }),
      CrashScenario("delete", before: opened) {
        try await Vault.delete(.messaging, in: $0)
      },
      CrashScenario("retire", before: opened) {
        _ = try await Vault.retire(.messaging, in: $0)
      },
    ] + slots
}

@Suite struct CrashTests {
  /// The views before and after an undisturbed change, and the points it has to fail at.
  private func undisturbed(
    _ scenario: CrashScenario
  ) async throws -> (old: String, new: String, events: [FileEvent]) {
    let home = TemporaryHome()
    try await scenario.before(home.store)
    let old = try await scenario.view(home.store)
    let recorder = FileRecorder()
    try await scenario.change(home.recording(recorder))
    let new = try await scenario.view(home.store)
    #expect(old != new)
    return (old, new, recorder.events.filter(\.mayFail))
  }

  @Test(arguments: CrashScenario.all)
  func `a process that dies at any step leaves the old state or the new`(
    scenario: CrashScenario
  ) async throws {
    let (old, new, events) = try await undisturbed(scenario)
    #expect(events.count > 1)
    for (number, event) in events.enumerated() {
      let home = TemporaryHome()
      try await scenario.before(home.store)
      let initial = try home.tree()
      let recorder = FileRecorder(fault: .crash(atEvent: number))
      let failure = await code { try await scenario.change(home.recording(recorder)) }
      let view = try await scenario.view(home.store)
      #expect(failure != nil || event.isOfAttempts && view == new, "step \(number)")
      #expect(view == old || view == new, "killed at step \(number): \(view)")

      let replay = DiskReplay(recorder.events, initialFiles: initial)
      let powerless = try TemporaryHome(home, replay.files(after: .everythingUnsynchronized))
      let durable = try await scenario.view(powerless.store)
      #expect(durable == old || durable == new, "power lost at step \(number): \(durable)")

      // Whoever comes next can work, and what was left behind is gone.
      if view == old {
        try await scenario.change(home.store)
        #expect(try await scenario.view(home.store) == new)
        #expect(try !LinuxFiles.entries(home.directory).contains { $0.hasSuffix(".new") })
      }
    }
  }

  @Test(arguments: CrashScenario.all)
  func `what was acknowledged survives the loss of power at once`(
    scenario: CrashScenario
  ) async throws {
    let (_, new, _) = try await undisturbed(scenario)
    let home = TemporaryHome()
    try await scenario.before(home.store)
    let initial = try home.tree()
    let recorder = FileRecorder()
    try await scenario.change(home.recording(recorder))
    let replay = DiskReplay(recorder.events, initialFiles: initial)
    let powerless = try TemporaryHome(home, replay.files(after: .everythingUnsynchronized))
    #expect(try await scenario.view(powerless.store) == new)
  }

  @Test(arguments: CrashScenario.all, [Errno.noSpace, Errno.ioError])
  func `a step that fails is reported, and leaves the old state or the new`(
    scenario: CrashScenario, errno: Errno
  ) async throws {
    let (old, new, events) = try await undisturbed(scenario)
    for (number, event) in events.enumerated() {
      let home = TemporaryHome()
      try await scenario.before(home.store)
      let recorder = FileRecorder(fault: .failure(atEvent: number, errno))
      let failure = await code { try await scenario.change(home.recording(recorder)) }
      let view = try await scenario.view(home.store)
      #expect(
        failure == .writeFailed || failure == nil && event.isOfAttempts && view == new,
        "step \(number)")
      #expect(view == old || view == new, "step \(number): \(view)")
      #expect(try !LinuxFiles.entries(home.directory).contains { $0.hasSuffix(".new") })
    }
  }

  @Test func `a failed change leaves the unlocked vault as it was, and usable`() async throws {
    let home = TemporaryHome()
    let recorder = FileRecorder(fault: .failure(atEvent: 14, .noSpace))
    let vault = try await CheapVault.create(
      .messaging, in: home.recording(recorder), credentials: credentials("p"))
    var failures = 0
    for number in 0..<10 {
      if await code({ try await vault.setText("x", for: "\(number)") }) != nil {
        failures += 1
        #expect(try await vault.itemNames().count == number)
        try await vault.setText("x", for: "\(number)")
      }
    }
    #expect(failures == 1)
    #expect(try await vault.itemNames().count == 10)
  }

  @Test func `contents are synchronized before they are renamed into place, the name after`()
    async throws
  {
    let home = TemporaryHome()
    let vault = try await CheapVault.create(
      .messaging, in: home.store, credentials: credentials("p"))
    await vault.lock()
    let recorder = FileRecorder()
    let recorded = try await CheapVault.get(.messaging, in: home.recording(recorder))
    try await recorded.unlock(with: credentials("p"))
    #expect(recorder.events.filter { !$0.isOfAttempts } == [])
    try await recorded.setText("x", for: "a")
    let steps = recorder.events.filter { !$0.isOfAttempts }.map { event in
      switch event {
      case .create: "create"
      case .write: "write"
      case .synchronize: "fsync"
      case .rename: "rename"
      case .synchronizeDirectory: "fsync directory"
      case .lock: "lock"
      case .unlock: "unlock"
      case .remove: "remove"
      default: "other"
      }
    }.filter { $0 != "other" }
    #expect(
      steps == [
        "lock", "remove", "create", "write", "fsync", "rename", "fsync directory", "unlock",
      ])
  }
}

extension FileEvent {
  /// Whether it keeps the record of attempts, which nobody is kept out by.
  fileprivate var isOfAttempts: Bool {
    switch self {
    case .create(let path), .write(let path, _, _), .synchronize(let path), .rename(let path, _),
      .remove(let path), .changeOwner(let path, _), .lock(let path), .unlock(let path):
      path.string.contains(".retry")
    default: false
    }
  }
}

extension TemporaryHome {
  /// A store on this home whose steps are logged and may fail.
  func recording(_ recorder: FileRecorder) -> FileVaultStore {
    FileVaultStore(home: path, fileSystem: RecordingFileSystem(recorder: recorder))
  }

  /// A home with these files of another one.
  convenience init(_ other: TemporaryHome, _ files: [FilePath: [UInt8]]) throws {
    self.init()
    for (file, bytes) in files {
      guard let name = file.lastComponent, file.removingLastComponent() == other.directory
      else { continue }
      let system = LinuxFileSystem()
      try system.createDirectory(directory, permissions: .ownerReadWriteExecute)
      try system.replace(
        directory.appending(name), with: bytes, permissions: .ownerReadWrite, owner: nil)
    }
  }
}
