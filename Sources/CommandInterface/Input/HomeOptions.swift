internal import ArgumentParser
package import DesktopKeyring
internal import SecretServiceStore
package import SystemPackage
package import VaultedDatabase

/// The options that every command on a home has: `--home`, `--store`, `--quiet` and `--verbose`.
///
/// The last two are repeated here, because a group within a group makes parsing in a debug build four times slower.
package struct HomeOptions: ParsableArguments {
  @Option(
    name: .customLong("home"),
    help: ArgumentHelp(
      "The directory of the vaults and the queue.",
      discussion: """
        Default: $DATAVAULT_HOME, then $STATE_DIRECTORY, then $XDG_DATA_HOME/datavault, then \
        ~/.local/share/datavault.
        """,
      valueName: "dir"),
    completion: .directory)
  var path: String?

  @Option(
    help: ArgumentHelp(
      "Where the vaults are stored: in files of the home, or in the user's Secret Service.",
      valueName: "file|secret-service"))
  var store = StoreChoice.file

  @Flag(name: .customLong("quiet"), help: OutputLevelOptions.quietHelp) var isQuiet = false
  @Flag(name: .customLong("verbose"), help: OutputLevelOptions.verboseHelp) var isVerbose = false

  /// Creates the options without values, for the parser.
  package init() {}

  /// Sets the output level of the whole program.
  package func validate() throws { try OutputLevel.set(isQuiet: isQuiet, isVerbose: isVerbose) }

  /// The home; it is also refused while a variable for all commands has a value that is not one.
  package func home() throws(CommandFailure) -> DataVaultHome {
    _ = try Environment.requiresSecuredVault()
    let given = if let path { path } else { try Self.standard() }
    let path = try FilePath.absolute(given, "--home")
    Detail.say("home \(path), vaults in store '\(store.rawValue)'")
    return switch store {
    case .file: DataVaultHome(path)
    case .secretService: DataVaultHome(path, store: SecretServiceStore(home: path))
    }
  }

  private static func standard() throws(CommandFailure) -> String {
    if let path = try Environment.path("DATAVAULT_HOME") { return path }
    // systemd separates several directories by colons. The first one is the home.
    if let path = try Environment.path("STATE_DIRECTORY")?.split(separator: ":").first {
      return String(path)
    }
    if let data = try Environment.path("XDG_DATA_HOME"), data.hasPrefix("/") {
      return "\(data)/datavault"
    }
    if let home = try Environment.path("HOME") { return "\(home)/.local/share/datavault" }
    throw CommandFailure(
      .usage, "no home directory is known: HOME and DATAVAULT_HOME are not set",
      hint: "give --home DIR")
  }
}

extension DataVaultHome {
  /// The keys of this home's vaults in the desktop's keyring.
  package var keyring: DesktopKeyring {
    let choice = store is SecretServiceStore ? StoreChoice.secretService : .file
    return DesktopKeyring(home: path, store: choice.rawValue)
  }
}

extension FilePath {
  /// The absolute path of an argument.
  ///
  /// - Parameter argument: its name, for messages.
  package static func absolute(_ path: String, _ argument: String) throws(CommandFailure)
    -> FilePath
  {
    guard !path.isEmpty else { throw CommandFailure(.usage, "\(argument) is empty") }
    let given = FilePath(path)
    if given.isAbsolute { return given }
    guard let current = Environment.workingDirectory else {
      throw CommandFailure(
        .usage, "the working directory was removed, or its name is not UTF-8",
        hint: "give an absolute path to \(argument)")
    }
    return FilePath(current).pushing(given)
  }
}

/// The values of `--store`.
package enum StoreChoice: String, ExpressibleByArgument, CaseIterable {
  case file
  case secretService = "secret-service"
}
