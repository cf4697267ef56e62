internal import CommandInterface
internal import Glibc
internal import SystemPackage
internal import VaultCrypto
internal import VaultedDatabase

/// The distribution's program `sqlite3`, with the extension that opens sealed databases.
struct SQLiteShell {
  private static let libraryName = "libsealedsqlite.so"
  /// The descriptor from which the extension reads the key.
  private static let keyDescriptor: Int32 = 3

  private let program: String
  /// Sends the shell a signal when this process dies: setpriv(1).
  private let launcher: String
  private let library: String

  /// Finds the programs and the extension.
  ///
  /// - Parameter library: the path of the extension; nil for the one of this installation.
  init(library: String?) throws(CommandFailure) {
    program = try Self.program("sqlite3", package: "sqlite3")
    launcher = try Self.program("setpriv", package: "util-linux")
    guard let library else {
      self.library = try Self.installedLibrary()
      return
    }
    let path = try FilePath.absolute(library, "--extension").string
    guard Self.isAccessible(path, R_OK) else {
      throw CommandFailure(
        .notFound, "the extension \(path) cannot be read: \(systemMessage(errno))",
        hint: "give the path of \(Self.libraryName) to --extension")
    }
    self.library = path
  }

  private static func program(_ name: String, package: String) throws(CommandFailure) -> String {
    for directory in (Environment["PATH"] ?? "").split(separator: ":") {
      let path = "\(directory)/\(name)"
      if isAccessible(path, X_OK) { return path }
    }
    throw CommandFailure(
      .unavailable, "the program '\(name)' was not found in $PATH",
      hint: "install it: apt-get install \(package)")
  }

  /// The extension beside this program, or in the directory of libraries of its installation.
  private static func installedLibrary() throws(CommandFailure) -> String {
    let directory = Environment.programDirectory
    let libraries = directory.removingLastComponent().appending("lib")
    let places =
      [directory, libraries] + architectures.map { libraries.appending("\($0)-linux-gnu") }
    guard
      let place = places.lazy.map({ $0.appending(libraryName) })
        .first(where: { isAccessible($0.string, R_OK) })
    else {
      throw CommandFailure(
        .unavailable, "the extension \(libraryName) was not found beside \(directory)",
        hint: "build it with make extension, and give its path to --extension")
    }
    return place.string
  }

  private static func isAccessible(_ path: String, _ mode: Int32) -> Bool {
    unsafe access(path, mode) == 0
  }

  /// The names of directories of Debian's libraries: only those of this machine can be loaded.
  private static let architectures = ["x86_64", "aarch64"]
}

extension SQLiteShell {
  /// Runs the shell to its end, on standard input, output and error.
  ///
  /// Control-C reaches the shell alone. If this process dies, the shell ends too.
  ///
  /// - Returns: its exit code; 128 and the number of the signal that ended it.
  func run(on database: HeldDatabase) throws(CommandFailure) -> Int32 {
    var ends: [Int32] = [-1, -1]
    guard unsafe pipe(&ends) == 0 else { throw failure(errno) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    defer { _ = close(ends[0]) }
    // The key fits into the pipe: the write does not wait for the reader.
    let key = OutputDescriptor(number: ends[1])
    let writing = Result { () throws(CommandFailure) in
      try database.withKey { (bytes) throws(CommandFailure) in try key.writeAll(bytes) }
    }
    _ = close(ends[1])
    try writing.get()

    // While it is ignored, the shell's status is lost.
    signal(SIGCHLD, SIG_DFL)
    let signals = [SIGINT, SIGQUIT].map { (number: $0, before: signal($0, SIG_IGN)) }
    defer { for (number, before) in signals { signal(number, before ?? SIG_DFL) } }
    // What this program ignores, but was not told to ignore.
    let restored = [SIGPIPE] + signals.filter { !isIgnoring($0.before) }.map(\.number)
    // The launcher's parent is this thread, which therefore must wait for it.
    return try Self.status(
      of: start(arguments(for: database.path), key: ends[0], restoring: restored))
  }

  /// The command line, which names the descriptor of the key.
  private func arguments(for path: FilePath) -> [String] {
    let uri =
      "file:\(path.string.percentEncodedPath)?vfs=sealed&keyfd=\(Self.keyDescriptor)&mode=ro"
    return [
      launcher, "--pdeathsig", "TERM", "--", program, "-bail", "-cmd",
      ".load \"\(library.escapedForShell)\"", "-cmd", ".open --readonly \"\(uri)\"",
      // After an .open that failed, the shell would continue with an empty database in memory. It
      // has no file; the overflow is an error that ends the shell.
      "-cmd",
      "SELECT abs(-9223372036854775808) FROM pragma_database_list WHERE name = 'main' AND file = '';",
      "-cmd", ".bail off", ":memory:",
    ]
  }

  private func start(
    _ arguments: [String], key: Int32, restoring signals: [Int32]
  ) throws(CommandFailure) -> pid_t {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_adddup2(&actions, key, Self.keyDescriptor)
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    // The threads of this program block signals, which the shell does not expect.
    var set = sigset_t()
    unsafe sigemptyset(&set)
    unsafe posix_spawnattr_setsigmask(&attributes, &set)
    for number in signals { unsafe sigaddset(&set, number) }
    unsafe posix_spawnattr_setsigdefault(&attributes, &set)
    unsafe posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    // execve(2) takes arrays that end with a null pointer.
    var words: [UnsafeMutablePointer<CChar>?] = unsafe arguments.map { unsafe strdup($0) } + [nil]
    // The extension's runtime would print memory of a shell that crashes, and the shell would end with 0.
    var variables: [UnsafeMutablePointer<CChar>?] =
      unsafe Environment.all(
        with: ["SQLITE_HISTORY": "/dev/null", "SWIFT_BACKTRACE": "enable=no"]
      ).map { unsafe strdup($0) } + [nil]
    defer { unsafe (words + variables).forEach { unsafe free($0) } }
    var process = pid_t()
    let result = unsafe posix_spawn(
      &process, launcher, &actions, &attributes, &words, &variables)
    guard result == 0 else { throw failure(result) }
    return process
  }

  private static func status(of process: pid_t) -> Int32 {
    var status: Int32 = 0
    var result: pid_t
    repeat { result = unsafe waitpid(process, &status, 0) } while result == -1 && errno == EINTR
    // Without its status, the shell has not succeeded.
    guard result == process else { return 1 }
    return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
  }

  private func failure(_ errorNumber: Int32) -> CommandFailure {
    CommandFailure(
      .inputOutput, "the program \(program) does not start: \(systemMessage(errorNumber))")
  }
}

extension String {
  /// The text as the path of a URI: <https://sqlite.org/uri.html>.
  fileprivate var percentEncodedPath: String {
    utf8.map { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "-"),
        UInt8(ascii: "_"), UInt8(ascii: "."):
        return String(Unicode.Scalar(byte))
      default:
        let digits = String(byte, radix: 16)
        return byte < 16 ? "%0\(digits)" : "%\(digits)"
      }
    }.joined()
  }

  /// The text in double quotes of an argument of a dot command.
  fileprivate var escapedForShell: String {
    replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
  }
}

extension Environment {
  /// The directory of this program, whatever links lead to it.
  fileprivate static var programDirectory: FilePath {
    var path = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
    let count = unsafe readlink("/proc/self/exe", &path, Int(PATH_MAX))
    let program =
      count > 0
      ? String(decoding: path[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
      : "/usr/bin/datavault"
    return FilePath(program).removingLastComponent()
  }

  /// All variables as `NAME=VALUE`, with other values of some.
  ///
  /// - Returns: bytes, because a variable need not be UTF-8.
  fileprivate static func all(with values: [String: String]) -> [[CChar]] {
    var variables = values.map { Array("\($0)=\($1)".utf8CString) }
    var index = 0
    while let variable = unsafe environ[index] {
      index += 1
      let isReplaced = values.keys.contains {
        unsafe strncmp(variable, "\($0)=", $0.utf8.count + 1) == 0
      }
      if isReplaced { continue }
      variables.append(
        unsafe Array(UnsafeBufferPointer(start: variable, count: strlen(variable) + 1)))
    }
    return variables
  }
}
