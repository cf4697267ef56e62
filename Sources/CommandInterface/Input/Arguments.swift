internal import ArgumentParser
internal import Glibc

/// The arguments of a program's command line.
struct Arguments {
  private let program: any CommandProgram.Type
  /// The arguments without the program's name.
  let words: [String]

  private init(_ program: any CommandProgram.Type, _ words: [String]) {
    self.program = program
    self.words = words
  }

  /// The arguments of this process, with the options of every command where the parser expects them.
  init(of program: any CommandProgram.Type) {
    self.init(program, Self.withSharedOptionsLast(Array(CommandLine.arguments.dropFirst())))
  }

  /// The arguments after the first one.
  var rest: Arguments { Arguments(program, Array(words.dropFirst())) }

  /// Refuses arguments that are not UTF-8.
  ///
  /// Swift replaces such bytes: two different names, or two different homes, would become equal.
  func requireUTF8() throws(CommandFailure) {
    for index in 0..<Int(CommandLine.argc) {
      guard let argument = unsafe CommandLine.unsafeArgv[index] else { return }
      guard unsafe String(validatingCString: argument) != nil else {
        throw CommandFailure(
          .usage, "argument \(index) is not UTF-8", hint: listHint)
      }
    }
  }

  /// Moves the options of every command from before the command to its end, where the parser expects
  /// them.
  private static func withSharedOptionsLast(_ arguments: [String]) -> [String] {
    var rest = arguments[...]
    var options: [String] = []
    while let first = rest.first,
      let name = ["--home", "--store", "--quiet", "--verbose"]
        .first(where: { first == $0 || first.hasPrefix("\($0)=") })
    {
      let count = first == name && !["--quiet", "--verbose"].contains(name) ? 2 : 1
      guard rest.count > count else { return arguments }
      options += rest.prefix(count)
      rest = rest.dropFirst(count)
    }
    // `help` and the root's own options take no home.
    guard let command = rest.first, command != "help", !command.hasPrefix("-") else {
      return Array(rest)
    }
    let end = rest.firstIndex(of: "--") ?? rest.endIndex
    return rest[..<end] + options + rest[end...]
  }

  /// Refuses an option that is given twice: the parser would ignore all values except the last.
  func requireSingleOptions() throws(CommandFailure) {
    let repeatable = program.repeatableOptions(of: words.first)
    var given: [Substring: Substring] = [:]
    for argument in words.prefix(while: { $0 != "--" }) where argument.hasPrefix("--") {
      let option = argument.prefix { $0 != "=" }
      guard !repeatable.contains(option),
        let earlier = given.updateValue(option, forKey: option.replacing("--no-", with: "--"))
      else { continue }
      let message =
        earlier == option ? "\(option) is given twice" : "\(earlier) and \(option) are both given"
      throw CommandFailure(.usage, message.onOneLine, hint: helpHint)
    }
  }

  private var listHint: String { "run '\(program.name) help' to list the commands" }

  /// The hint at the help of the command that the arguments begin with.
  var helpHint: String {
    let names = words.prefix(command.nameCount)
    return names.isEmpty
      ? listHint : "run '\(program.name) help \(names.joined(separator: " "))'"
  }

  /// The failure for an argument that stands where a command must, and names none.
  ///
  /// Where a group has a default command, the argument can be one of that command's. It then counts
  /// as a mistyped name only if it differs in one character.
  var unknownCommand: CommandFailure? {
    let (nameCount, command) = command
    let names = command.configuration.subcommands.compactMap { $0.configuration.commandName }
    guard let argument = words.dropFirst(nameCount).first, !names.isEmpty,
      !argument.hasPrefix("-"), argument != "help"
    else { return nil }
    let hasDefault = command.configuration.defaultSubcommand != nil
    let near = Self.nearest(
      to: argument, among: names, distance: hasDefault ? 1 : max(2, argument.count / 3))
    if hasDefault, near.isEmpty { return nil }
    let question = near.map { "'\($0)'" }.joined(separator: " or ")
    return CommandFailure(
      .usage, "unknown command '\(argument.onOneLine)'",
      hint: near.isEmpty ? listHint : "did you mean \(question)? \(listHint)")
  }

  /// The command that the arguments begin with, and how many of them name it.
  var command: (nameCount: Int, command: any ParsableCommand.Type) {
    var command: any ParsableCommand.Type = program
    for (index, argument) in words.enumerated() {
      let subcommands = command.configuration.subcommands
      guard let next = subcommands.first(where: { $0.configuration.commandName == argument })
      else { return (index, command) }
      command = next
    }
    return (words.count, command)
  }

  /// At most three names that begin with the argument, or are at most so many characters from it.
  private static func nearest(
    to argument: String, among names: [String], distance limit: Int
  ) -> [String] {
    names.map { (name: $0, distance: distance($0, argument)) }
      .filter { $0.distance <= limit || $0.name.hasPrefix(argument) }
      .sorted { ($0.distance, $0.name) < ($1.distance, $1.name) }
      .prefix(3).map(\.name)
  }

  /// The Levenshtein distance: how many characters to insert, delete or replace.
  private static func distance(_ first: String, _ second: String) -> Int {
    let second = Array(second.prefix(100))
    var row = Array(0...second.count)
    for (index, character) in first.enumerated() {
      var diagonal = row[0]
      row[0] = index + 1
      for column in second.indices {
        let replaced = diagonal + (second[column] == character ? 0 : 1)
        diagonal = row[column + 1]
        row[column + 1] = min(replaced, row[column] + 1, row[column + 1] + 1)
      }
    }
    return row[second.count]
  }
}
