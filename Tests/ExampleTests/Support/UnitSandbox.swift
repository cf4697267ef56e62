import Foundation
import Glibc
import TestSupport

/// The parts of `spoold.service` that can be tested without systemd.
///
/// They are an unprivileged user without capabilities, a session keyring without links, no network,
/// the limit of locked memory, and the filters of system calls.
struct UnitSandbox {
  static let unit = "Examples/systemd/spoold.service"

  /// Whether a trivial program runs in the sandbox, and all users can read the built programs.
  static let isAvailable: Bool = {
    let folder = ScratchFolder()
    guard getuid() == 0, Sessions.areAvailable, let sandbox = try? UnitSandbox(folder)
    else { return false }
    let spool = Spool(folder: folder)
    guard (try? sandbox.take(spool)) != nil else { return false }
    return [sandbox.wrapper + ["true"], sandbox.operatorWrapper + [Daemon.executable, "--help"]]
      .allSatisfy { (try? Program.run("/usr/bin/env", $0).status) == 0 }
  }()

  /// An unused user id.
  let userID = UInt32.random(in: 200_000..<2_000_000)
  private let script: String

  init(_ folder: ScratchFolder) throws {
    script = folder.path("sandbox.py")
    try folder.put(Self.filter, at: "sandbox.py")
  }

  /// Makes the user the owner of a folder and its current contents.
  func take(_ spool: Spool) throws {
    let outcome = try Program.run(
      "/usr/bin/env", ["chown", "-R", "\(userID):\(userID)", spool.folder.url.path])
    guard outcome.status == 0 else { throw DaemonEnded(errors: outcome.errors) }
  }

  /// Runs a command as the user, as an operator does with `sudo -u spoold`.
  var operatorWrapper: [String] {
    [
      "setpriv", "--reuid=\(userID)", "--regid=\(userID)", "--clear-groups", "keyctl", "session",
      "-",
    ]
  }

  /// Runs a command in the sandbox of the service.
  var wrapper: [String] {
    ["unshare", "--net", "--ipc", "--mount"] + operatorWrapper
      + ["/usr/bin/python3", script, Repository.path(Self.unit)]
  }

  /// A script that reads the unit file, applies its filters to itself, and executes the given
  /// command.
  ///
  /// See seccomp(2).
  private static let filter = #"""
    import ctypes, os, platform, re, resource, struct, subprocess, sys

    lines = [line.strip() for line in open(sys.argv[1]) if not line.startswith("#")]
    def values(name):
        return [line.split("=", 1)[1] for line in lines if line.startswith(name + "=")]

    def expand(names):
        calls = set()
        for name in names:
            if name.startswith("@"):
                text = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", name],
                                      check=True, capture_output=True, text=True).stdout
                calls |= expand([word.strip() for word in text.splitlines()[1:]
                                 if word.strip() and not word.strip().startswith("#")])
            else:
                calls.add(name)
        return calls

    allowed = set()
    for value in values("SystemCallFilter"):
        if value.startswith("~"):
            allowed -= expand(value[1:].split())
        else:
            allowed |= expand(value.split())
    assert len(allowed) > 200

    headers = {"x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
               "aarch64": "/usr/include/asm-generic/unistd.h"}
    numbers = {m[1]: int(m[2]) for m in re.finditer(
        r"#define __NR_(\w+)\s+(\d+)", open(headers[platform.machine()]).read())}

    LOAD, JEQ, JSET, RET = 0x20, 0x15, 0x45, 0x06
    ALLOW, ERRNO = 0x7FFF0000, 0x00050000
    EPERM, EAFNOSUPPORT = 1, 97
    rules = [(LOAD, 0, 0, 0)]
    def low(argument):
        return (LOAD, 0, 0, 16 + 8 * argument)
    # MemoryDenyWriteExecute=: no memory that is written and run, none that becomes executable.
    assert values("MemoryDenyWriteExecute") == ["yes"]
    rules += [(JEQ, 0, 5, numbers["mmap"]), low(2), (JSET, 0, 2, 4), (JSET, 0, 1, 2),
              (RET, 0, 0, ERRNO | EPERM), (RET, 0, 0, ALLOW)]
    for name in ["mprotect", "pkey_mprotect"]:
        rules += [(JEQ, 0, 4, numbers[name]), low(2), (JSET, 0, 1, 4),
                  (RET, 0, 0, ERRNO | EPERM), (RET, 0, 0, ALLOW)]
    assert values("RestrictAddressFamilies") == ["AF_UNIX"]
    rules += [(JEQ, 0, 4, numbers["socket"]), low(0), (JEQ, 1, 0, 1),
              (RET, 0, 0, ERRNO | EAFNOSUPPORT), (RET, 0, 0, ALLOW)]
    for number in sorted(numbers[name] for name in allowed if name in numbers):
        rules += [(JEQ, 0, 1, number), (RET, 0, 0, ALLOW)]
    assert values("SystemCallErrorNumber") == ["EPERM"]
    rules += [(RET, 0, 0, ERRNO | EPERM)]

    [locked] = values("LimitMEMLOCK")
    byte_count = int(locked.rstrip("M")) << 20
    if resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] not in (-1, byte_count):
        byte_count = min(byte_count, resource.getrlimit(resource.RLIMIT_MEMLOCK)[1])
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (byte_count, byte_count))

    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
    program = struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(code))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, program, 0, 0) == 0
    os.execvp(sys.argv[2], sys.argv[2:])
    """#
}
