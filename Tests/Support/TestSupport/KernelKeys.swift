/// The kernel's system calls about keys.
package enum KernelKeys {
  /// A wrapper for a command for which the kernel refuses every system call about keys, as in a container.
  package static func refused(with number: Int32) -> [String] {
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
