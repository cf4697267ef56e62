internal import ArgumentParser
internal import Glibc

/// The option `--yes` of the commands that delete.
package struct ConfirmationOptions: ParsableArguments {
  @Flag(name: .customLong("yes"), help: "Do not ask before deleting, also at a terminal.")
  var isConfirmed = false

  /// Creates the options without values, for the parser.
  package init() {}

  /// Asks the user, if standard input is a terminal; programs are not asked.
  ///
  /// - Parameter question: what is deleted, such as "delete vault 'web' and its items".
  /// - Throws: a failure if the answer is not yes.
  package func require(_ question: String) throws(CommandFailure) {
    guard !isConfirmed, isatty(STDIN_FILENO) == 1 else { return }
    StandardError.write("\(question.onOneLine)? [y/N] ")
    let answer = readLine()?.lowercased()
    guard answer == "y" || answer == "yes" else {
      throw CommandFailure(.notPermitted, "not confirmed: nothing was changed")
    }
  }
}
