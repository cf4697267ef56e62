import DataVault
import Foundation
import Glibc
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

/// `datavault database shell`, which runs the distribution's shell with the extension of this build.
@Suite struct DatabaseShellTests {
  private let home: TestHome

  init() throws { home = try TestHome.secured() }

  private func shell(_ statements: String) throws -> Program {
    try home.unlocked("database", "shell", input: statements)
  }

  @Test func `the shell reads the messages, and leaves the home as it was`() throws {
    let before = try home.contents()
    try shell("SELECT count(*) FROM message;\n").expect(0, prints: "1\n")
    #expect(try home.contents() == before)
    let names = try FileManager.default.contentsOfDirectory(atPath: home.path)
    #expect(!names.contains("messaging.db-wal") && !names.contains("messaging.db-shm"), "\(names)")
  }

  @Test(arguments: [
    "INSERT INTO channel(name) VALUES ('x');", "DROP TABLE message;", "VACUUM;",
    "PRAGMA user_version = 7;", "ATTACH 'plain.db' AS plain; CREATE TABLE plain.t(x);",
  ])
  func `a statement that writes fails, and the exit code is that of the shell`(statement: String)
    throws
  {
    let before = try home.contents()
    let outcome = try shell(statement + "\n")
    if !statement.hasPrefix("PRAGMA") { #expect(outcome.status == 1, "\(outcome.errors)") }
    #expect(try home.contents() == before)
    #expect(!FileManager.default.fileExists(atPath: "plain.db"))
  }

  @Test func `a shell that crashes prints no memory, and its signal is the exit code`() throws {
    let outcome = try shell("SELECT 1;\n.shell kill -SEGV $PPID\nSELECT 2;\n")
    #expect(outcome.status == 128 + SIGSEGV)
    #expect(outcome.errors == "" && !outcome.text.contains("2"))
  }

  @Test func `the shell's exit code is told also to a parent that ignores the ends of children`()
    throws
  {
    let outcome = try Tool.run(
      ["database", "shell", "--home", home.path, "--password-file", home.passwordFile],
      input: Array("no statement;\n".utf8), through: ["/usr/bin/env", "--ignore-signal=CHLD"])
    #expect(outcome.status == 1)
  }

  @Test func `a restored home without a log cannot be secured again while the shell runs`() throws {
    let backup = home.folder.path("backup")
    try home.unlocked("backup", backup).expect(0)
    try FileManager.default.removeItem(atPath: home.path)
    try Tool.run(["restore", backup, home.path, "--password-file", home.passwordFile]).expect(0)
    let shell = try RunningShell(home)
    _ = try shell.started()
    try home.queue("rekey").expect(75)
    shell.type(".exit 0\n")
    #expect(shell.child.wait() == 0)
    try home.queue("rekey").expect(0)
  }

  @Test func `the shell reads beside a running engine, and sees its last commit`() throws {
    let publisher = try Publisher(home, ["c", "--password-file", home.passwordFile])
    publisher.publish("from the engine")
    try publisher.report(1)
    try shell("SELECT count(*) FROM message;\n").expect(0, prints: "2\n")
    publisher.publish("again")
    try publisher.report(2)
    #expect(publisher.finish() == 0)
  }

  /// A shell that waits for statements.
  private final class RunningShell {
    let child: Child
    let files = ScratchFolder()
    private let input: Int32

    init(_ home: TestHome) throws {
      try #require(mkfifo(files.path("input"), 0o600) == 0)
      input = open(files.path("input"), O_RDWR | O_CLOEXEC)
      child = try home.start(
        "database", "shell",
        descriptors: [
          0: .reading(files.path("input")), 1: .writing(files.path("output")),
          2: .writing(files.path("errors")),
        ])
    }

    func type(_ text: String) { _ = write(input, text, text.utf8.count) }

    /// Waits until the shell has answered a statement, and returns its process.
    func started() throws -> pid_t {
      type("SELECT 'ready';\n")
      try eventually(files.contents(of: "errors") ?? "") {
        files.contents(of: "output")?.contains("ready") == true
      }
      let threads = "/proc/\(child.id)/task"
      let children = try FileManager.default.contentsOfDirectory(atPath: threads).map {
        try String(contentsOfFile: "\(threads)/\($0)/children", encoding: .utf8)
      }
      return try #require(pid_t(children.joined().trimmingCharacters(in: .whitespaces)))
    }

    deinit { close(input) }
  }

  @Test func `the key is in no argument, variable or file of the shell`() async throws {
    let shell = try RunningShell(home)
    let process = try shell.started()
    let vault = try await Vault.get(.messaging, in: FileVaultStore(home: FilePath(home.path)))
    try await vault.unlock(with: .keyFile(home.key()))
    let key = Data(try await vault.databaseKeys().current.withUnsafeBytes { Array($0) })
    let forms = [
      key, Data(key.base64EncodedString().utf8),
      Data(key.map { String(format: "%02x", $0) }.joined().utf8),
    ]
    func requireNoKey(_ path: String) {
      // The kernel's files report no size, so they are read to their end.
      let file = FileHandle(forReadingAtPath: path)
      guard let bytes = try? file?.readToEnd() else { return }
      for form in forms { #expect(bytes.range(of: form) == nil, "\(path)") }
    }
    for id in [process, shell.child.id] {
      for name in ["cmdline", "environ"] { requireNoKey("/proc/\(id)/\(name)") }
    }
    let variables = try #require(FileManager.default.contents(atPath: "/proc/\(process)/environ"))
    #expect(variables.range(of: Data("SQLITE_HISTORY=/dev/null".utf8)) != nil)
    for folder in [home.folder, shell.files] {
      let root = folder.url.path
      for name in FileManager.default.enumerator(atPath: root)?.allObjects as? [String] ?? []
      where name != "input" {
        requireNoKey(root + "/" + name)
      }
    }
    shell.type(".quit\n")
    #expect(shell.child.wait() == 0)
  }

  @Test func `a change of key fails while the shell runs, and succeeds after it`() throws {
    let shell = try RunningShell(home)
    _ = try shell.started()
    try home.queue("rekey").expect(75)
    shell.type(".exit 3\n")
    #expect(shell.child.wait() == 3)
    try home.queue("rekey").expect(0)
    try self.shell("SELECT count(*) FROM message;\n").expect(0, prints: "1\n")
  }

  @Test func `the shell ends when the command is killed`() throws {
    let shell = try RunningShell(home)
    let process = try shell.started()
    kill(shell.child.id, SIGKILL)
    #expect(shell.child.wait() == 128 + SIGKILL)
    try eventually { kill(process, 0) != 0 || isZombie(process) }
  }

  private func isZombie(_ process: pid_t) -> Bool {
    let status = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
    return status?.contains(") Z ") ?? true
  }

  @Test func `the shell accepts any path of a home`() throws {
    let strange = home.folder.path("a 'b' \"c\" %41?d#e&f")
    try FileManager.default.moveItem(atPath: home.path, toPath: strange)
    let arguments = ["database", "shell", "--home", strange, "--password-file", home.passwordFile]
    try Tool.run(arguments, input: Array("SELECT count(*) FROM message;\n".utf8))
      .expect(0, prints: "1\n")
  }

  @Test func `a missing program or extension is named, before the password is read`() throws {
    let command = ["database", "shell", "--home", home.path]
    try Tool.run(command + ["--extension", "/nowhere/x.so"])
      .expect(66, says: "the extension /nowhere/x.so cannot be read", "hint: ")
    try Tool.run(command, environment: ["PATH": "/nowhere"])
      .expect(69, says: "the program 'sqlite3' was not found in $PATH", "hint: install it")
  }

  @Test func `an extension that does not load ends the command`() throws {
    let file = try home.folder.file("broken.so", Array("no library".utf8))
    let outcome = try home.unlocked(
      "database", "shell", "--extension", file, input: "SELECT 'went on';\n")
    #expect(outcome.status == 1, "\(outcome.errors)")
    #expect(!outcome.text.contains("went on"))
  }

  @Test func `an empty home and a wrong password have their usual exit codes`() throws {
    try TestHome.fresh().run("database", "shell").expect(66, says: "no queue found")
    try home.run("database", "shell", "--password-file", home.wrongFile).expect(77)
  }

  @Test func `the shell at a terminal takes statements, and Control-C does not end the command`()
    throws
  {
    let fixture = try TerminalFixture()
    let user = try TerminalUser()
    let terminal = Child.Descriptor.terminal(user.terminal)
    let child = try fixture.start(
      ["database", "shell"], at: user, descriptors: [1: terminal, 2: terminal])
    try user.answer("Password of vault messaging: ", with: TestHome.password)
    func wait(for text: String) throws {
      try eventually(user.seen) {
        user.readOutput(milliseconds: 50)
        return user.seen.hasSuffix(text)
      }
    }
    try wait(for: "sqlite> ")
    user.press("\u{3}")
    user.press("SELECT 'rows: ' || count(*) FROM message;\n")
    try eventually(user.seen) {
      user.readOutput(milliseconds: 50)
      return user.seen.contains("rows: 1")
    }
    user.press(".quit\n")
    #expect(child.wait() == 0, "\(user.seen)")
  }
}
