import Foundation
import Glibc
import TestSupport
import Testing

/// The abilities of this machine's kernel keyring that session tests need.
///
/// Each is checked once.
enum Keyrings {
  static let skipReason: Comment = "the kernel refuses its keyring to this process"
  static let isAvailable: Bool = {
    guard let home = try? TestHome.secured() else { return false }
    defer { _ = try? home.run("lock", "messaging") }
    return (try? home.unlocked("unlock", "messaging", "--for", "5s").status) == 0
  }()

  /// Runs a command with a new session keyring without links, as systemd gives to a service.
  static let fresh = ["keyctl", "session", "-"]
}

extension SmallDisk {
  static let skipReason: Comment = "mounting a small tmpfs needs root"
}

/// An unused user id, under which root can run commands.
struct OtherUser {
  static let skipReason: Comment =
    "acting as another user needs root, and an executable that all users can run"
  static let isAvailable: Bool = {
    guard getuid() == 0, Keyrings.isAvailable else { return false }
    return (try? Tool.run(["--version"], through: OtherUser().wrapper).status) == 0
  }()

  let id = UInt32.random(in: 200_000..<2_000_000)

  var wrapper: [String] { ["setpriv", "--reuid=\(id)", "--regid=\(id)", "--clear-groups"] }

  /// Like `wrapper`, but with the capabilities to change to another user.
  var switchingWrapper: [String] {
    wrapper + ["--inh-caps=+setuid,+setgid", "--ambient-caps=+setuid,+setgid"]
  }

  /// Makes this user the owner of a home.
  func take(_ home: TestHome) throws {
    let owner = ["-R", "\(id):\(id)", home.folder.url.path]
    #expect(try Program.run("/bin/chown", owner).status == 0)
  }

  /// Runs `datavault` on a home as this user, in a fresh session keyring each time.
  func run(_ home: TestHome, _ arguments: String...) throws -> Program {
    try run(home, arguments)
  }

  func run(_ home: TestHome, _ arguments: [String]) throws -> Program {
    try Tool.run(arguments + ["--home", home.path], through: wrapper + Keyrings.fresh)
  }
}
