internal import DataVault
internal import Logging
internal import VaultCrypto

/// Writes errors, warnings and hints to standard error, a line each.
enum StandardError {
  static func say(_ message: String) {
    write("datavault: \(message.onOneLine)\n")
  }

  static func hint(_ hint: String) {
    write("hint: \(hint.onOneLine)\n")
  }

  /// Says a warning, unless the level is `quiet`.
  static func warn(_ message: String) {
    if OutputLevel.current != .quiet { say("warning: \(message)") }
  }

  /// Says that a vault is not secured, at every level.
  static func warnOfNoSecurity(of id: VaultID) {
    say(
      "warning: vault '\(id)' is not secured: it opens with the publicly known password; "
        + "\(id.securingHint)")
  }

  /// Writes text of this program without escaping it: it can contain control characters for the
  /// terminal.
  static func write(_ text: String) {
    // A failed write to standard error cannot be reported anywhere.
    _ = OutputDescriptor.standardError.write(Array(text.utf8))
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
enum MemoryWarning {
  static func giveOnce() {
    guard LockedMemory.takeWarning() else { return }
    StandardError.warn(
      "secrets cannot be locked into memory and could be swapped to disk: "
        + "raise RLIMIT_MEMLOCK (ulimit -l)"
    )
  }
}
