internal import AccessControl
internal import ArgumentParser

/// The flags that name rights.
struct RightsOptions: ParsableArguments {
  @Flag(help: "Let them subscribe, see presence and state, and read history.")
  var read = false

  @Flag(help: "Let them publish and signal.")
  var write = false

  @Flag(help: "Let them change channel groups, make consumers, work on dead letters, and purge.")
  var manage = false

  @Flag(help: "Let them delete messages from history.")
  var delete = false

  @Flag(help: "Let them take messages as jobs.")
  var lease = false

  /// The rights that are given.
  var rights: Rights {
    let flags: [(isGiven: Bool, right: Rights)] = [
      (read, .read), (write, .write), (manage, .manage), (delete, .delete), (lease, .lease),
    ]
    return Rights(flags.filter(\.isGiven).map(\.right))
  }

  func validate() throws {
    guard !rights.isEmpty else {
      throw ValidationError("give at least one of --read, --write, --manage, --delete and --lease")
    }
  }
}
