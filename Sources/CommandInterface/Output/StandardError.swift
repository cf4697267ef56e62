package import DataVault
internal import Logging
internal import Synchronization
internal import VaultCrypto

/// Writes errors, warnings and hints to standard error, a line each.
package enum StandardError {
  private static let name = Mutex("")

  /// The name of the program at the beginning of each message; empty until the main function sets it.
  static var programName: String {
    get { name.withLock { $0 } }
    set { name.withLock { $0 = newValue } }
  }

  /// Writes a message after the program's name.
  package static func say(_ message: String) {
    write("\(programName): \(message.onOneLine)\n")
  }

  /// Writes a hint.
  package static func hint(_ hint: String) {
    write("hint: \(hint.onOneLine)\n")
  }

  /// Says a warning, unless the level is `quiet`.
  package static func warn(_ message: String) {
    if OutputLevel.current != .quiet { say("warning: \(message)") }
  }

  /// Says that a vault is not secured, at every level.
  package static func warnOfNoSecurity(of id: VaultID) {
    say(
      "warning: vault '\(id)' is not secured: it opens with the publicly known password; "
        + "\(id.securingHint)")
  }

  /// Writes text of this program without escaping it: it can contain control characters for the
  /// terminal.
  package static func write(_ text: String) {
    // A failed write to standard error cannot be reported anywhere.
    _ = OutputDescriptor.standardError.write(Array(text.utf8))
  }
}

extension VaultID {
  /// The hint that names the command which secures the vault.
  package var securingHint: String {
    self == .messaging ? "run datavault secure" : "run datavault change-password \(self)"
  }
}

/// Writes the libraries' log messages to standard error, from ``OutputLevel/ofLog`` up.
struct StandardErrorLog: LogHandler {
  var metadata: Logger.Metadata = [:]
  var logLevel: Logger.Level = OutputLevel.ofLog

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    StandardError.say("\(event.level): \(event.message)")
  }
}

/// Warns once where the system does not let this process lock memory.
package enum MemoryWarning {
  /// Warns, if the process has locked less than it should; only the first time.
  package static func giveOnce() {
    guard LockedMemory.takeWarning() else { return }
    StandardError.warn(
      "secrets cannot be locked into memory and could be swapped to disk: "
        + "raise RLIMIT_MEMLOCK (ulimit -l)"
    )
  }
}
