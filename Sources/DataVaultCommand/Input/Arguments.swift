/// The words of the command line.
enum Arguments {
  /// Swift repairs what is not UTF-8: two names, or two homes, that differ there would become one.
  static func requireUTF8() throws(CommandFailure) {
    for index in 0..<Int(CommandLine.argc) {
      guard let argument = unsafe CommandLine.unsafeArgv[index] else { return }
      guard unsafe String(validatingCString: argument) != nil else {
        throw CommandFailure(
          .usage, "argument \(index) is not UTF-8", hint: "datavault help shows every command")
      }
    }
  }
}
