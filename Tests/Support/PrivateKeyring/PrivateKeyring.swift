import DataVault
import Foundation
package import TestSupport
package import SecretServiceStore
package import SystemPackage

/// A private session bus and GNOME Keyring in a temporary home; both end with this object.
package final class PrivateKeyring {
  package static let skipReason =
    "dbus-daemon, gnome-keyring-daemon or secret-tool is missing: scripts/install-dependencies --tests"

  package static var isAvailable: Bool {
    [busProgram, keyringProgram, secretToolProgram].allSatisfy {
      FileManager.default.isExecutableFile(atPath: $0)
    }
  }

  static let busProgram = "/usr/bin/dbus-daemon"
  static let keyringProgram = "/usr/bin/gnome-keyring-daemon"
  package static let secretToolProgram = "/usr/bin/secret-tool"

  package static let password = "keyring's password"

  /// The directory of this test; the store's `vaults` directory is under `home`.
  package var folder: FilePath { scratch.path }
  private let scratch = ScratchFolder()
  package var home: FilePath { folder.appending("home") }
  package var busAddress: String { "unix:path=\(folder.appending("run/bus"))" }

  /// The environment in which a program finds this bus.
  package var environment: [String: String] {
    [
      "PATH": "/usr/bin:/bin", "HOME": folder.appending("user").string,
      "XDG_DATA_HOME": folder.appending("user/data").string,
      "XDG_RUNTIME_DIR": folder.appending("run").string, "DBUS_SESSION_BUS_ADDRESS": busAddress,
    ]
  }

  private var bus: Process?
  private var keyring: Process?

  /// Starts a bus without a service.
  ///
  /// - Parameter maximumMessageByteCount: by default the limit of the distribution's session bus.
  package init(maximumMessageByteCount: Int = 1_000_000_000) throws {
    for name in ["home", "user", "user/data", "run"] {
      mkdir(folder.appending(name).string, 0o700)
    }
    let configuration = """
      <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
       "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
      <busconfig><type>session</type><listen>\(busAddress)</listen><auth>EXTERNAL</auth>
      <policy context="default"><allow send_destination="*" eavesdrop="true"/>
      <allow eavesdrop="true"/><allow own="*"/></policy>
      <limit name="max_incoming_bytes">1000000000</limit>
      <limit name="max_outgoing_bytes">1000000000</limit>
      <limit name="max_message_size">\(maximumMessageByteCount)</limit></busconfig>
      """
    try scratch.put(configuration, at: "bus.conf")
    try startBus()
  }

  deinit {
    stopKeyring()
    stopBus()
  }

  /// A store on this bus.
  package var store: SecretServiceStore {
    SecretServiceStore(home: home, busAddress: busAddress)
  }

  // MARK: The bus

  package func startBus() throws {
    let output = Pipe()
    bus = try start(
      Self.busProgram,
      ["--config-file=\(folder.appending("bus.conf"))", "--nofork", "--print-address=1"],
      output: output)
    // The bus prints its address when it listens.
    _ = output.fileHandleForReading.availableData
  }

  package func stopBus() {
    stop(&bus)
    unlink(folder.appending("run/bus").string)
  }

  // MARK: The service

  /// Starts the service and unlocks or creates its default collection.
  package func startUnlocked(password: String = PrivateKeyring.password) throws {
    try startKeyring(password: password)
    try wait("unlocked")
  }

  /// Starts the service as after a login without a password: existing collections stay locked.
  package func startLocked(wrongPassword: String? = nil) throws {
    try startKeyring(password: wrongPassword)
    try wait("locked") { $0.code == .storeLocked }
  }

  /// Starts the service as before any login: there is no default collection.
  package func startWithoutCollection() throws {
    try startKeyring(password: nil)
    try wait("started") { $0.message.contains("default collection") }
  }

  private func startKeyring(password: String?) throws {
    var arguments = [
      "--foreground", "--components=secrets", "--control-directory=\(folder.appending("run"))",
    ]
    if password != nil { arguments.append("--unlock") }
    keyring = try start(Self.keyringProgram, arguments, input: password)
  }

  /// Kills the service, as a crash would.
  package func stopKeyring() {
    stop(&keyring)
  }

  /// Suspends the service, which accepts calls but answers none until it is stopped.
  package func suspendKeyring() {
    if let keyring { kill(keyring.processIdentifier, SIGSTOP) }
  }

  /// Waits until the store answers, or fails with an error that the state of the service explains.
  private func wait(
    _ what: String, orError isExpected: (VaultError) -> Bool = { _ in false }
  ) throws {
    var failure = ""
    try eventually("\(what): \(failure)") {
      do throws(VaultError) {
        _ = try store.ids()
        return true
      } catch {
        failure = "\(error)"
        return isExpected(error)
      }
    }
  }

  // MARK: Processes

  /// Runs a program on this bus and waits for its end.
  package func run(
    _ program: String, _ arguments: [String], input: [UInt8] = []
  ) throws -> Program {
    try Program.run(program, arguments, input: input, environment: environment)
  }

  private func start(
    _ program: String, _ arguments: [String], input: String? = nil, output: Pipe? = nil
  ) throws -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.environment = environment
    process.standardInput =
      try input.map { try scratch.reading("keyring-password", Array($0.utf8)) } ?? .nullDevice
    process.standardOutput = output ?? FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    return process
  }

  private func stop(_ process: inout Process?) {
    guard let running = process else { return }
    process = nil
    kill(running.processIdentifier, SIGKILL)
    running.waitUntilExit()
  }
}
