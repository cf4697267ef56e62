internal import Logging
internal import VaultCrypto

/// What people read when something is wrong, each line named after the program.
enum StandardError {
  static func say(_ message: String) {
    write("datavault: \(message.onOneLine)\n")
  }

  static func hint(_ hint: String) {
    write("hint: \(hint.onOneLine)\n")
  }

  static func warn(_ message: String) {
    say("warning: \(message)")
  }

  /// Text of this program's own, with what the terminal is to obey.
  static func write(_ text: String) {
    // Nobody is left to tell when standard error is closed.
    _ = OutputDescriptor.standardError.write(Array(text.utf8))
  }
}

/// Sends what the libraries log to standard error, warnings and worse only.
struct StandardErrorLog: LogHandler {
  var metadata: Logger.Metadata = [:]
  var logLevel: Logger.Level = .warning

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    StandardError.say("\(event.level): \(event.message)")
  }
}

/// What people are told once when the system does not let this process lock memory.
enum MemoryWarning {
  static func giveOnce() {
    guard LockedMemory.takeWarning() else { return }
    StandardError.warn(
      "secrets cannot be locked into memory and may reach the swap: raise RLIMIT_MEMLOCK (ulimit -l)"
    )
  }
}
