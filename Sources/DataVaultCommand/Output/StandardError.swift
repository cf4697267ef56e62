/// What people read when something is wrong, each line named after the program.
enum StandardError {
  static func say(_ message: String) {
    write("datavault: \(message)\n")
  }

  static func warn(_ message: String) {
    say("warning: \(message)")
  }

  static func write(_ text: String) {
    // Nobody is left to tell when standard error is closed.
    _ = OutputDescriptor.standardError.write(Array(text.utf8))
  }
}
