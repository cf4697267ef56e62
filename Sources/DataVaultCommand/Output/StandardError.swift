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
