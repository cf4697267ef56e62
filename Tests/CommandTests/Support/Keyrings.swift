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

  /// Runs a command for which the kernel refuses every system call about keys, as in a container.
  static func refused(with number: Int32) -> [String] {
    ["/usr/bin/python3", "-c", filter, String(number)]
  }

  /// A seccomp(2) filter.
  ///
  /// The calls' numbers jump to the last rule, all others to the rule before it.
  private static let filter = """
    import ctypes, os, platform, struct, sys
    calls = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}[platform.machine()]
    rules = [(0x20, 0, 0, 0)]
    rules += [(0x15, len(calls) - i, 0, call) for i, call in enumerate(calls)]
    rules += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050000 | int(sys.argv[1]))]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
    program = struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(code))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, program, 0, 0) == 0
    os.execv(sys.argv[2], sys.argv[2:])
    """
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
