internal import ArgumentParser
internal import VaultedDatabase

/// `datavault clean-up-first-run`.
struct CleanUpFirstRunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clean-up-first-run",
    abstract: "Put aside a messaging vault that an earlier installation left.",
    discussion: """
      Only a vault whose database is missing, and only to a side name. Make sure first that the \
      file system with the database is mounted: an unmounted one looks the same.
      """)

  @OptionGroup var home: HomeOptions

  func run() async throws {
    let sideName = try await VaultedDatabase.cleanUpFirstRun(home.home())
    if let sideName {
      try confirm("the old messaging vault is now \(sideName)")
    } else {
      try confirm("nothing to clean up")
    }
  }
}
